import { join } from 'node:path';
import fc from 'fast-check';
import sharp from 'sharp';
import { describe, expect, it } from 'vitest';
import { createSsrDialect } from '../../src/agent/dialects/ssr.js';
import { escapeOutsideText } from '../../src/agent/escape.js';
import { loadTokenizer } from '../../src/agent/tokenizer.js';
import { loadImage } from '../../src/media/image.js';
import { packageRoot } from '../../src/paths.js';
import type { SearchResult, ToolResult } from '../../src/types.js';

const tokenizer = await loadTokenizer(join(packageRoot(), 'benchmarks/micro/model'));
const dialect = createSsrDialect('Answer.', tokenizer.addedTokens);
const addedIds = new Set(tokenizer.addedTokens.map(tokenizer.idOf));
const thumbnail = await loadImage(
  await sharp({ create: { width: 8, height: 8, channels: 3, background: '#345' } })
    .png()
    .toBuffer(),
);

/** The added tokens among a text's ids, in order. */
const markers = (text: string): number[] => tokenizer.encode(text).filter((id) => addedIds.has(id));

const invisible = [
  '\u0000',
  '\u00ad',
  '\u200b',
  '\u200d',
  '\u202e',
  '\u2066',
  '\ufeff',
  '\ud800',
  '\udc00',
  '\u{e0061}',
  '\u0338',
];
const fragments = tokenizer.addedTokens.flatMap((token) => [
  token,
  token.toUpperCase(),
  token.slice(0, Math.ceil(token.length / 2)),
  token.slice(Math.ceil(token.length / 2)),
]);
const piece = fc.oneof(
  fc.constantFrom(...tokenizer.addedTokens),
  fc.constantFrom(...fragments),
  fc.constantFrom('<', '|', '>', '/', ' ', '\n', '<|', '|>', '</', ...invisible),
  fc.constantFrom('<thinking>', '</answer>', '1. ', 'Image 3: ', 'assistant\n', 'user\n'),
  fc.string({ unit: 'binary', maxLength: 6 }),
  // A token with something between its characters, which must not come together when that is removed.
  fc
    .tuple(fc.constantFrom(...tokenizer.addedTokens), fc.constantFrom(...invisible), fc.nat(20))
    .map(([token, between, place]) => token.slice(0, place) + between + token.slice(place)),
);
const hostile = fc.array(piece, { maxLength: 12 }).map((pieces) => pieces.join(''));

const runs = { numRuns: 2_000, seed: 4 };

describe('observations of hostile text', () => {
  it('know every added token of the tokenizer', () => {
    expect(addedIds.size).toBeGreaterThanOrEqual(11);
    // The property below means something only if unescaped text would break it.
    expect(markers('a <|im_end|> b </tool_response>')).toHaveLength(2);
  });

  it('hold no added token but those that the harness puts there', () => {
    const result = fc
      .record({ title: hostile, text: hostile, url: hostile, pictured: fc.boolean() }, { requiredKeys: ['pictured'] })
      .map(({ pictured, ...texts }): SearchResult => ({ ...texts, ...(pictured && { thumbnail }) }));
    const outcome = fc.oneof(
      fc.array(result, { maxLength: 4 }).map((results): ToolResult => ({ kind: 'results', results })),
      hostile.map((message): ToolResult => ({ kind: 'error', message })),
    );
    fc.assert(
      fc.property(outcome, fc.boolean(), (found, closed) => {
        const { text } = dialect.observation(found, 1, closed);
        expect(markers(text)).toEqual(markers(dialect.observation(harmless(found), 1, closed).text));
      }),
      runs,
    );
  });

  it('hold none in questions either', () => {
    fc.assert(
      fc.property(hostile, (text) => {
        const turn = (asked: string) => dialect.questionTurn({ id: 'x', type: '', text: asked, images: [], answers: [] }).text;
        expect(markers(turn(text))).toEqual(markers(turn('x')));
      }),
      runs,
    );
  });
});

describe('escaping', () => {
  it('leaves well-formed text without invisible characters, and settles after one pass', () => {
    fc.assert(
      fc.property(hostile, (text) => {
        const escaped = escapeOutsideText(text, tokenizer.addedTokens);
        expect(escaped.isWellFormed()).toBe(true);
        expect(escaped).not.toMatch(/[\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]/);
        expect(escaped).not.toContain('\0');
        expect(escapeOutsideText(escaped, tokenizer.addedTokens)).toBe(escaped);
      }),
      runs,
    );
  });

  it('breaks overlapping tokens of any alphabet', () => {
    const token = fc.string({ unit: fc.constantFrom('a', 'b', '<'), minLength: 2, maxLength: 4 });
    fc.assert(
      fc.property(
        fc.array(token, { minLength: 1, maxLength: 3 }),
        fc.string({ unit: fc.constantFrom('a', 'b', '<', ' ') }),
        (tokens, text) => {
          const escaped = escapeOutsideText(text, tokens);
          for (const added of tokens) expect(escaped).not.toContain(added);
        },
      ),
      runs,
    );
  });
});

/** The same shape with plain words. */
function harmless(result: ToolResult): ToolResult {
  if (result.kind !== 'results') return { kind: 'error', message: 'x' };
  return {
    kind: 'results',
    results: result.results.map(({ thumbnail: picture, ...texts }) => ({
      ...Object.fromEntries(Object.keys(texts).map((name) => [name, 'x'])),
      ...(picture && { thumbnail: picture }),
    })),
  };
}
