// Golden pairs per dialect: a new case is a new entry, a new dialect a new file.
import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { dialectFormat, dialectNames } from '../../../src/agent/dialects/registry.js';
import { loadTokenizer } from '../../../src/agent/tokenizer.js';
import { UsageError } from '../../../src/errors.js';
import { pixelRegion } from '../../../src/tools/box.js';
import type { Action, Image, SearchResult, ToolResult } from '../../../src/types.js';
import { plainImage } from '../../support/agent.js';

type GoldenResult =
  | { kind: 'results'; results: (Omit<SearchResult, 'thumbnail'> & { thumbnail?: string })[] }
  | { kind: 'image'; image: string }
  | { kind: 'error'; message: string };

interface Golden {
  /** Sizes of the pictures that actions are read against. */
  readonly pictures: readonly { width: number; height: number }[];
  readonly question: string;
  readonly reasoning: string;
  readonly actions: readonly [string, Action][];
  readonly observations: readonly { result: GoldenResult; imageCount: number; closed: boolean; text: string }[];
  /** A result that tries to end the observation and to answer. */
  readonly evil: GoldenResult;
  /** Action to pixels [left, top, right, bottom] of the source picture. */
  readonly crops: readonly [string, [number, number, number, number]][];
}

const folder = new URL('golden/', import.meta.url);
const tokenizer = await loadTokenizer('benchmarks/micro/model');
const geometry = () => ({ patchSize: 16, mergeSize: 2, minPixels: 65536, maxPixels: 8294400 });
const pictures: Readonly<Record<string, Image>> = { blue: await plainImage('blue'), green: await plainImage('green', 96) };
const pad = tokenizer.idOf('<|image_pad|>');

function resultOf(golden: GoldenResult): ToolResult {
  if (golden.kind === 'image') return { kind: 'image', image: pictures[golden.image]! };
  if (golden.kind === 'error') return golden;
  const results = golden.results.map(({ thumbnail, ...rest }) => ({
    ...rest,
    ...(thumbnail && { thumbnail: pictures[thumbnail]! }),
  }));
  return { kind: 'results', results };
}

describe.each(readdirSync(folder).map((file) => file.replace('.json', '')))('dialect %s', (name) => {
  const golden = JSON.parse(readFileSync(new URL(`${name}.json`, folder), 'utf8')) as Golden;
  const dialect = dialectFormat(name).create({ systemPrompt: 'Look.', addedTokens: tokenizer.addedTokens, geometry });

  it('has at least six golden pairs of actions, and one of every kind it knows', () => {
    expect(golden.actions.length).toBeGreaterThanOrEqual(6);
    expect(golden.actions.length + golden.observations.length + golden.crops.length).toBeGreaterThanOrEqual(12);
  });

  it('asks, and wraps reasoning', () => {
    const question = { id: 'q', type: 't', text: 'What is it?', images: [pictures.blue!], answers: [] };
    expect(dialect.questionTurn(question)).toEqual({ text: golden.question, images: [pictures.blue] });
    expect(dialect.wrapReasoning('Hm.')).toBe(golden.reasoning);
    expect(dialect.systemTurn()).toBe('<|im_start|>system\nLook.<|im_end|>\n');
  });

  it.each(golden.actions.map(([text, action]) => ({ text, action })))('reads $text', ({ text, action }) => {
    expect(dialect.parseAction(text, golden.pictures)).toEqual(action);
  });

  it.each(golden.observations)(
    'shows $result.kind to the model, $imageCount pictures before',
    ({ result, imageCount, closed, text }) => {
      const shown = dialect.observation(resultOf(result), imageCount, closed);
      expect(shown.text).toBe(text);
      const ids = tokenizer.encode(shown.text);
      expect(tokenizer.decode(ids)).toBe(text);
      // One image_pad per picture, and the turn's own ends: nothing else may look like them.
      expect(ids.filter((id) => id === pad)).toHaveLength(shown.images.length);
      expect(ids.filter((id) => id === tokenizer.idOf('<|im_end|>'))).toHaveLength(closed ? 1 : 2);
    },
  );

  it('cannot be led by a result', () => {
    const { text } = dialect.observation(resultOf(golden.evil), 1, true);
    expect(text.match(/<\|im_end\|>/g)).toHaveLength(1);
    expect(text).not.toContain('<answer>Rome');
    expect(text.match(/<\/tool_response>|<\/information>/g)?.length ?? 1).toBe(1);
  });

  it.each(golden.crops.map(([text, pixels]) => ({ text, pixels })))('turns $text into pixels', ({ text, pixels }) => {
    const action = dialect.parseAction(text, golden.pictures);
    if (action.kind !== 'image_zoom_in_tool') throw new Error(`no crop: ${JSON.stringify(action)}`);
    const { width, height } = golden.pictures[action.imageIndex]!;
    const { left, top, width: wide, height: high } = pixelRegion(action.box, width, height);
    expect([left, top, left + wide, top + high]).toEqual(pixels);
  });
});

describe('the dialects by name', () => {
  it('all have golden pairs, but for ssr with its own tests', () => {
    const files = readdirSync(folder).map((file) => file.replace('.json', ''));
    expect(['ssr', ...files].sort()).toEqual([...dialectNames].sort());
  });

  it('have prompts that exist and fill', async () => {
    for (const name of dialectNames) {
      const text = readFileSync(`configs/prompts/${dialectFormat(name).prompt}`, 'utf8');
      const placeholders = [...text.matchAll(/\{\{(\w+)\}\}/g)].map(([, placeholder]) => placeholder);
      expect(placeholders.every((placeholder) => placeholder === 'tools' || placeholder === 'candidates')).toBe(true);
    }
  });

  it('are listed when a name is unknown', () => {
    expect(() => dialectFormat('esperanto')).toThrow(UsageError);
    expect(() => dialectFormat('esperanto')).toThrow('one of ssr, mars, mmsearch-r1, deepeyes, deepeyes-v2, mini-o3, qwen-agent');
  });
});
