// Work is counted in tokens: a trajectory computes each history token once, each candidate token once per turn, each action token once.
import { beforeAll, describe, expect, it } from 'vitest';
import type { Runner } from '../../../src/engines/embedded/runner.js';
import type { TokenContext } from '../../../src/types.js';
import { greedySampling, neverAborted, openRunner } from './open-runner.js';
import { noisePicture, pictureContext } from './pictures.js';
import { imageTokenId, randomIds, textContext, writeTinyCheckpoint } from './tiny-checkpoint.js';

let directory: string;

beforeAll(async () => {
  directory = await writeTinyCheckpoint();
});

describe('a trajectory of three turns', () => {
  it('does exactly the floor of work', async () => {
    const runner = await openRunner(directory);
    const candidates = [randomIds(7, 3), randomIds(9, 4), randomIds(5, 5)];
    let context = await pictureContext('floor', [[96, 96]]);
    let computed = 0;
    let floor = context.length;
    for (let turn = 0; turn < 3; turn++) {
      computed += (await runner.prefill(context, neverAborted)).computedTokens;
      const scoring = await runner.score(context, candidates, neverAborted);
      computed += scoring.usage.computedTokens;
      floor += 7 + 9 + 5;
      expect(scoring.usage).toMatchObject({ cachedTokens: context.length, imagesEncoded: 0 });

      const chosen = append(context, candidates[turn] ?? []);
      const action = await runner.generate(chosen, greedySampling(8), neverAborted);
      computed += action.usage.computedTokens;
      const actionIds = action.tokens.map(({ id }) => id);
      const observed = randomIds(11, 20 + turn);
      context = append(chosen, [...actionIds, ...observed]);
      floor += actionIds.length + observed.length;
    }
    computed += (await runner.prefill(context, neverAborted)).computedTokens;
    expect(computed).toBe(floor);
  });

  it('encodes each picture once, also one that arrives later', async () => {
    const runner = await openRunner(directory);
    const first = await pictureContext('images', [[96, 96]]);
    const thumbnail = await noisePicture(60, 120, 77);
    expect((await runner.prefill(first, neverAborted)).imagesEncoded).toBe(1);
    const second: TokenContext = {
      ...first,
      ids: [...first.ids, imageTokenId, 20, 21],
      images: [...first.images, thumbnail],
      length: first.length + 2 + 15,
    };
    expect(await runner.prefill(second, neverAborted)).toEqual({
      promptTokens: second.length,
      cachedTokens: first.length,
      computedTokens: 17,
      imagesEncoded: 1,
    });
  });
});

describe('what counts as cached', () => {
  it('tells pictures apart by their content', async () => {
    const runner = await openRunner(directory);
    const context = await pictureContext('pictures', [[96, 96]]);
    await runner.prefill(context, neverAborted);
    const other = { ...context, images: [await noisePicture(96, 96, 99)] };
    const { cachedTokens, imagesEncoded } = await runner.prefill(other, neverAborted);
    expect({ cachedTokens, imagesEncoded }).toEqual({ cachedTokens: context.ids.indexOf(imageTokenId), imagesEncoded: 1 });
  });

  it('computes only the last token again when a context is cut short', async () => {
    const runner = await openRunner(directory);
    const long = textContext('cut', 60);
    const short = { ...long, ids: long.ids.slice(0, 40), length: 40 };
    await runner.prefill(long, neverAborted);
    const cut = await runner.score(short, [randomIds(4, 2)], neverAborted);
    expect(cut.usage).toMatchObject({ cachedTokens: 39, computedTokens: 1 + 4 });
    expect(cut.rows).toEqual((await (await openRunner(directory)).score(short, [randomIds(4, 2)], neverAborted)).rows);
  });

  it('keeps the shared part of a candidate that the context leaves halfway', async () => {
    const runner = await openRunner(directory);
    const context = textContext('halfway', 30);
    const candidate = randomIds(10, 8);
    await runner.score(context, [randomIds(5, 9), candidate], neverAborted);
    const longer = append(context, [...candidate.slice(0, 6), 11, 12]);
    expect(await runner.prefill(longer, neverAborted)).toMatchObject({ cachedTokens: 36, computedTokens: 2 });
    const score = await runner.score(longer, [candidate], neverAborted);
    expect(score.rows).toEqual((await (await openRunner(directory)).score(longer, [candidate], neverAborted)).rows);
  });
});

describe('a shared prefix', () => {
  it('is computed once, and every trajectory starts from it', async () => {
    const runner = await openRunner(directory);
    const prefix = textContext('system', 25);
    expect(await runner.pin(prefix, neverAborted)).toMatchObject({ cachedTokens: 0, computedTokens: 25 });
    expect(await runner.pin(prefix, neverAborted)).toMatchObject({ cachedTokens: 25, computedTokens: 0 });
    for (const trajectory of ['a', 'b']) {
      const context = append({ ...prefix, trajectory }, randomIds(10, 5));
      expect(await runner.prefill(context, neverAborted)).toMatchObject({ cachedTokens: 25, computedTokens: 10 });
    }
  });

  it('survives the release of the trajectories that used it', async () => {
    const runner = await openRunner(directory);
    const prefix = textContext('system', 25);
    await runner.pin(prefix, neverAborted);
    const context = append({ ...prefix, trajectory: 'a' }, randomIds(10, 5));
    await runner.prefill(context, neverAborted);
    runner.release('a');
    expect(await runner.prefill(context, neverAborted)).toMatchObject({ cachedTokens: 25, computedTokens: 10 });
  });
});

describe('a bounded cache', () => {
  it('forgets the trajectory left alone longest, and computes it again with the same result', async () => {
    const runner = await openRunner(directory, { maxCacheTokens: 256 });
    const candidates = [randomIds(5, 2), randomIds(6, 3)];
    const contexts = ['a', 'b', 'c'].map((trajectory, index) => textContext(trajectory, 100, index));
    const before = await scoresOf(runner, contexts[0], candidates);
    for (const context of contexts.slice(1)) await runner.prefill(context, neverAborted);
    const again = await runner.score(contexts[0] as TokenContext, candidates, neverAborted);
    expect(again.usage).toMatchObject({ cachedTokens: 0, computedTokens: 111 });
    expect(again.rows).toEqual(before);
    expect(await runner.prefill(contexts[2] as TokenContext, neverAborted)).toMatchObject({ cachedTokens: 100 });
  });

  it('refuses a context that could never fit', async () => {
    const runner = await openRunner(directory, { maxCacheTokens: 128 });
    await expect(runner.prefill(textContext('long', 200), neverAborted)).rejects.toThrow(
      /does not fit the cache; expected at most 128/,
    );
  });

  it('frees what is released', async () => {
    const runner = await openRunner(directory, { maxCacheTokens: 256 });
    for (let index = 0; index < 20; index++) {
      await runner.prefill(textContext(`t${index}`, 200, index), neverAborted);
      runner.release(`t${index}`);
    }
    expect(await runner.prefill(textContext('t0', 200, 0), neverAborted)).toMatchObject({ cachedTokens: 0 });
  });
});

describe('an abort between chunks', () => {
  it('keeps what was computed, and the trajectory goes on from there', async () => {
    const runner = await openRunner(directory, { chunkTokens: 16 });
    const context = await pictureContext('abort', [
      [96, 96],
      [96, 96],
    ]);
    let checks = 0;
    const abort = () => {
      if (++checks === 2) throw new Error('aborted');
    };
    await expect(runner.prefill(context, abort)).rejects.toThrow('aborted');
    const usage = await runner.prefill(context, neverAborted);
    // The first chunk ended inside the first picture, which is not kept in part.
    expect(usage.cachedTokens).toBe(8);
    const candidates = [randomIds(5, 2)];
    const fresh = await scoresOf(await openRunner(directory), context, candidates);
    expect(await scoresOf(runner, context, candidates)).toEqual(fresh);
  });
});

function append(context: TokenContext, ids: readonly number[]): TokenContext {
  return { ...context, ids: [...context.ids, ...ids], length: context.length + ids.length };
}

async function scoresOf(runner: Runner, context: TokenContext | undefined, candidates: readonly (readonly number[])[]) {
  return (await runner.score(context as TokenContext, candidates, neverAborted)).rows;
}
