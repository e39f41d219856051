import { existsSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { loadLibrary, tokeniseLibrary } from '../../../src/agent/library.js';
import { createReasoning, promptFiles, type ReasoningSettings, reasonings } from '../../../src/agent/reasoning/create.js';
import { UsageError } from '../../../src/errors.js';
import type { TokenContext } from '../../../src/types.js';
import { testAgent } from '../../support/agent.js';

const answer = '<answer>Oslo</answer>';
const agent = await testAgent({ script: { '*': [{ candidate: 2, action: `<thinking>Hm.</thinking>${answer}` }] } });
const { engine, tokenizer, dialect, systemIds } = agent;
const library = tokeniseLibrary(await loadLibrary('configs/libraries/default.json'), dialect, tokenizer);
const parts = { engine, tokenizer, dialect, library, systemIds };
const ids = [...systemIds, ...tokenizer.encode('<|im_start|>user\nWhich city?<|im_end|>\n<|im_start|>assistant\n')];
const context: TokenContext = { trajectory: 'q', ids, images: [], length: ids.length };

const settings: ReasoningSettings = {
  reasoning: 'selection',
  scorer: 'length',
  alpha: 1,
  tau: 0,
  maxThoughtTokens: 64,
  openings: async () => 'I see.',
  openingTexts: ['I know', 'I search'],
  sketch: 'chunked-symbolism',
};

async function thoughtOf(overrides: Partial<ReasoningSettings>): Promise<{ text: string; selection: string | null }> {
  const { reasoner } = await createReasoning({ ...settings, ...overrides }, parts);
  const { ids: z, selection, action } = await reasoner.reason(context, agent.sampling, () => 0);
  await action;
  await engine.release('q');
  return { text: tokenizer.decode(z), selection: selection?.candidate ?? null };
}

describe('a way of reasoning by its name', () => {
  it.each([
    ['selection', `<thinking>${library[2]?.text}</thinking>`, 'r_ZOOM_DETAIL'],
    // The scripted engine prefers the third continuation, which is the third number.
    ['index', `<thinking>${library[2]?.text}</thinking>`, 'r_ZOOM_DETAIL'],
    ['autoregressive', '<thinking>Hm.</thinking>', null],
    ['freeform', '<thinking>Hm.</thinking>', null],
    ['chain-of-draft', '<thinking>Hm.</thinking>', null],
    ['sketch-of-thought', '<thinking>[chunked symbolism] <thinking>Hm.</thinking>', null],
    ['probe-prefill', '<thinking>I see.<thinking>Hm.</thinking>', null],
    ['none', '', null],
  ] as const)('%s thinks %s', async (reasoning, text, selection) => {
    expect(await thoughtOf({ reasoning })).toEqual({ text, selection });
  });

  it('logprob-prefill takes the first words that score best', async () => {
    const narrow = await testAgent({ script: { '*': [{ candidate: 1, action: ' on.</thinking>' }] } });
    const { reasoner } = await createReasoning(
      { ...settings, reasoning: 'logprob-prefill' },
      { ...parts, engine: narrow.engine },
    );
    const { ids: z } = await reasoner.reason(context, agent.sampling, () => 0);
    expect(tokenizer.decode(z)).toBe('<thinking>I search on.</thinking>');
  });

  it.each(['length', 'first-divergent', 'prior-corrected'] as const)('selects with scorer %s', async (scorer) => {
    // A prior that prefers the very candidate leaves nothing to choose by: the first maximum is taken.
    const { selection } = await thoughtOf({ scorer });
    expect(selection).toBe(scorer === 'prior-corrected' ? 'r_GENERAL_KNOW' : 'r_ZOOM_DETAIL');
  });

  it('has its prompts, all of them files that exist', () => {
    for (const reasoning of reasonings) {
      const files = promptFiles(reasoning).map((name) => `configs/prompts/${name}`);
      expect(files.filter((path) => !existsSync(path))).toEqual([]);
    }
  });
});

describe('the dialect of a way of reasoning', () => {
  it.each([
    ['selection', {}, 'neither one'],
    ['freeform', {}, 'no closing </thinking>'],
    ['selection', { fallback: { reasoning: 'freeform', margin: 1 } }, 'no closing </thinking>'],
  ] as const)('of %s with %j reads an empty action as such', async (reasoning, extra, reason) => {
    const created = await createReasoning({ ...settings, reasoning, ...extra }, parts);
    const read = created.dialect.parseAction as (text: string, pictures: never) => unknown;
    expect(read('', [] as never)).toMatchObject({ kind: 'invalid', reason: expect.stringContaining(reason) });
  });
});

describe('settings that do not fit', () => {
  const { openings: _, openingTexts: __, sketch: ___, ...bare } = settings;

  it.each([
    [{ reasoning: 'probe-prefill' }, 'probe-prefill needs a table or an endpoint'],
    [{ reasoning: 'logprob-prefill' }, 'logprob-prefill needs texts to choose among'],
    [{ reasoning: 'sketch-of-thought' }, 'sketch-of-thought needs a fixed sketch or a router'],
    [{ reasoning: 'freeform', fallback: { reasoning: 'selection', margin: 1 } }, 'no such fallback'],
    [{ fallback: { reasoning: 'index', margin: 1 } }, 'no such fallback'],
  ] as const)('%j is refused', async (overrides, message) => {
    await expect(createReasoning({ ...bare, ...overrides }, parts)).rejects.toThrow(UsageError);
    await expect(createReasoning({ ...bare, ...overrides }, parts)).rejects.toThrow(message);
  });
});
