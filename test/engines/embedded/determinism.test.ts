// A token's log-probability is the same to the last bit however the work is cut: packed or alone, in chunks or whole, cached or not.
import { beforeAll, describe, expect, it } from 'vitest';
import type { Runner } from '../../../src/engines/embedded/runner.js';
import type { TokenContext } from '../../../src/types.js';
import { greedySampling, neverAborted, openRunner } from './open-runner.js';
import { pictureContext } from './pictures.js';
import { randomIds, textContext, writeTinyCheckpoint } from './tiny-checkpoint.js';

const candidates = [randomIds(9, 3), randomIds(1, 4), randomIds(14, 5), randomIds(6, 6), randomIds(33, 7)];
const kinds = ['text', 'pictures'] as const;

let directory: string;
let contexts: Record<(typeof kinds)[number], TokenContext>;

beforeAll(async () => {
  directory = await writeTinyCheckpoint();
  contexts = {
    text: textContext('t', 75),
    pictures: await pictureContext('t', [
      [96, 96],
      [200, 60],
    ]),
  };
});

describe.each(kinds)('a context of %s', (kind) => {
  const logprobs = async (runner: Runner, continuations: readonly (readonly number[])[], context = contexts[kind]) => {
    const { rows } = await runner.score(context, continuations, neverAborted);
    return rows.map((row) => row.map(({ logprob }) => logprob));
  };

  it('scores candidates alike packed in one batch and one by one', async () => {
    const packed = await logprobs(await openRunner(directory), candidates);
    for (const [index, candidate] of candidates.entries()) {
      expect(await logprobs(await openRunner(directory), [candidate])).toEqual([packed[index]]);
    }
  });

  it('scores alike whatever else is in the batch', async () => {
    const runner = await openRunner(directory);
    const forwards = await logprobs(runner, candidates);
    const backwards = await logprobs(runner, candidates.toReversed());
    expect(backwards.toReversed()).toEqual(forwards);
  });

  it.each([1, 3, 16, 31])('scores alike in chunks of %i positions', async (chunkTokens) => {
    const whole = await logprobs(await openRunner(directory), candidates);
    expect(await logprobs(await openRunner(directory, { chunkTokens }), candidates)).toEqual(whole);
  });

  it('scores alike behind a history that was cached in pieces', async () => {
    const context = contexts[kind];
    const whole = await logprobs(await openRunner(directory), candidates);
    const runner = await openRunner(directory);
    const text = context.ids.slice(0, 5);
    await runner.pin({ ...context, trajectory: 'shared', ids: text, images: [], length: 5 }, neverAborted);
    await runner.prefill(context, neverAborted);
    expect(await logprobs(runner, candidates)).toEqual(whole);
  });

  it('generates the tokens whose log-probabilities scoring then confirms, exactly', async () => {
    const context = contexts[kind];
    const { tokens } = await (await openRunner(directory)).generate(context, greedySampling(12), neverAborted);
    const rows = await logprobs(await openRunner(directory), [tokens.map(({ id }) => id)]);
    expect(rows[0]).toEqual(tokens.map(({ logprob }) => logprob));
  });

  it('goes on from a chosen candidate as if it had always been history', async () => {
    const context = contexts[kind];
    const chosen = candidates[2] ?? [];
    const longer = { ...context, ids: [...context.ids, ...chosen], length: context.length + chosen.length };
    const runner = await openRunner(directory);
    await runner.score(context, candidates, neverAborted);
    const kept = await runner.generate(longer, greedySampling(10), neverAborted);
    expect(kept.usage).toMatchObject({ cachedTokens: longer.length, computedTokens: 9 });
    const fresh = await (await openRunner(directory)).generate(longer, greedySampling(10), neverAborted);
    expect(kept.tokens).toEqual(fresh.tokens);
  });
});
