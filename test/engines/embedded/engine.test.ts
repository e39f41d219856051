// The engine through its contract, worker threads included: many trajectories at once, aborts, refusals, an orderly end.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createEmbeddedEngine } from '../../../src/engines/embedded/engine.js';
import { EngineError } from '../../../src/errors.js';
import type { Engine, Generation, Scoring, TokenContext, TokenLogprob, Usage } from '../../../src/types.js';
import { greedySampling } from './open-runner.js';
import { noisePicture, pictureContext } from './pictures.js';
import { contextLength, imageTokenId, randomIds, textContext, vocabularySize, writeTinyCheckpoint } from './tiny-checkpoint.js';

let directory: string;
let engine: Engine;

beforeAll(async () => {
  directory = await writeTinyCheckpoint();
  engine = await createEmbeddedEngine(directory, { workers: 2, chunkTokens: 32 });
});
afterAll(() => engine.close());

describe('describe', () => {
  it('names the model, its weights and its geometry', async () => {
    expect(await engine.describe()).toMatchObject({
      engine: 'embedded',
      weights: expect.stringMatching(/^[0-9a-f]{64}$/),
      vocabularySize,
      contextLength,
      geometry: { patchSize: 16, mergeSize: 2, minPixels: 9216, maxPixels: 9216 },
    });
  });
});

describe('several trajectories at once', () => {
  it('give what they give one after the other, work included', async () => {
    const shared = textContext('system', 20);
    const run = async (over: Engine, index: number): Promise<[Usage, Scoring, Generation]> => {
      const base = await pictureContext(`t${index}`, [[96, 96]], 30 + index);
      const context = { ...base, ids: [...shared.ids, ...base.ids], length: shared.length + base.length };
      const prefill = await over.prefill(context);
      const candidates = [randomIds(6, index), randomIds(9, index + 1)];
      const scoring = await over.score(context, candidates);
      const chosen = { ...context, ids: [...context.ids, ...(candidates[1] ?? [])], length: context.length + 9 };
      const sampling = { ...greedySampling(12), temperature: 1, seed: index };
      const generation = await over.generate(chosen, sampling);
      await over.release(context.trajectory);
      return [prefill, scoring, generation];
    };
    const indices = [0, 1, 2, 3, 4, 5, 6];
    await engine.prefill(shared, { shared: true });
    const atOnce = await Promise.all(indices.map((index) => run(engine, index)));

    const alone = await createEmbeddedEngine(directory, { workers: 1 });
    await alone.prefill(shared, { shared: true });
    const serial: typeof atOnce = [];
    for (const index of indices) serial.push(await run(alone, index));
    await alone.close();
    expect(atOnce).toEqual(serial);
    expect(atOnce[0]?.[0]).toMatchObject({ cachedTokens: 20, imagesEncoded: 1 });
  });
});

describe('generate', () => {
  it('stops after a stop id, which it includes', async () => {
    const context = textContext('stop', 30, 9);
    const free = await engine.generate(context, greedySampling(10));
    expect(free).toMatchObject({ finishReason: 'length', usage: { promptTokens: 30, computedTokens: 30 + 9 } });
    const stopId = free.tokens[4]?.id ?? 0;
    const first = free.tokens.findIndex(({ id }) => id === stopId);
    const stopped = await engine.generate(context, greedySampling(10, [stopId]));
    expect(stopped).toMatchObject({ finishReason: 'stop', tokens: free.tokens.slice(0, first + 1) });
  });

  it('is a function of its seed', async () => {
    const context = textContext('seeds', 30);
    const draw = async (seed: number) => (await engine.generate(context, { ...greedySampling(10), temperature: 1, seed })).tokens;
    expect(await draw(1)).toEqual(await draw(1));
    expect(await draw(1)).not.toEqual(await draw(2));
  });

  it('never produces a banned id', async () => {
    const context = textContext('bans', 30);
    const bannedIds = Array.from({ length: vocabularySize - 2 }, (_, id) => id);
    const { tokens } = await engine.generate(context, { ...greedySampling(20), temperature: 1, bannedIds });
    expect(tokens.every(({ id }) => id >= vocabularySize - 2)).toBe(true);
  });

  it('shows each token as it is produced', async () => {
    const seen: TokenLogprob[] = [];
    const { tokens } = await engine.generate(textContext('stream', 30), greedySampling(6), {
      onToken: (token) => seen.push(token),
    });
    expect(seen).toEqual(tokens);
  });
});

describe('an abort', () => {
  it('rejects with the reason of the signal, soon, and leaves the trajectory usable', async () => {
    const context = textContext('aborted', 20);
    const controller = new AbortController();
    const reason = new Error('enough');
    const sampling = greedySampling(contextLength - 20);
    const running = engine.generate(context, sampling, { signal: controller.signal, onToken: () => controller.abort(reason) });
    await expect(running).rejects.toBe(reason);
    const { rows } = await engine.score(context, [randomIds(5, 1)]);
    const fresh = await engine.score({ ...context, trajectory: 'fresh' }, [randomIds(5, 1)]);
    expect(rows).toEqual(fresh.rows);
  });

  it('beforehand does nothing at all', async () => {
    const signal = AbortSignal.abort(new Error('never started'));
    await expect(engine.prefill(textContext('never', 20), { signal })).rejects.toThrow('never started');
  });
});

describe('a wrong call', () => {
  const wrong: readonly (readonly [string, (over: Engine) => Promise<unknown>, RegExp])[] = [
    [
      'an id outside the vocabulary',
      (over) => over.prefill({ ...textContext('w', 1), ids: [vocabularySize] }),
      /not in the vocabulary; expected 0 to 100, found 101/,
    ],
    [
      'an image token without an image',
      (over) => over.prefill({ ...textContext('w', 2), ids: [10, imageTokenId] }),
      /expected 0 image_pad ids, found 1/,
    ],
    [
      'a context that miscounts',
      (over) => over.prefill({ ...textContext('w', 5), length: 6 }),
      /miscounts its positions; expected 5, found 6/,
    ],
    ['an empty context', (over) => over.prefill({ ...textContext('w', 0) }), /context is empty/],
    ['an empty continuation', (over) => over.score(textContext('w', 5), [[10], []]), /continuation is empty/],
    [
      'an image token in a continuation',
      (over) => over.score(textContext('w', 5), [[imageTokenId]]),
      /continuation holds an image token/,
    ],
    [
      'a context beyond the model’s length',
      (over) => over.generate(textContext('w', 500), greedySampling(13)),
      /too long for the model; expected at most 512 positions, found 500 and 13 to come/,
    ],
  ];

  it.each(wrong)('%s is refused', async (_name, call, message) => {
    const error = await call(engine).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(EngineError);
    expect((error as Error).message).toMatch(message);
  });

  it('a picture that cannot be decoded is refused by its hash', async () => {
    const whole = await noisePicture(96, 96, 1);
    const image = { ...whole, bytes: whole.bytes.slice(0, 400) };
    const context: TokenContext = { trajectory: 'spoiled', ids: [10, imageTokenId], images: [image], length: 10 };
    await expect(engine.prefill(context)).rejects.toThrow(
      new RegExp(`image ${image.sha256.slice(0, 12)}: the image cannot be decoded`),
    );
  });

  it.each(['workers', 'maxCacheTokens', 'chunkTokens'] as const)('%s of zero is refused', async (option) => {
    await expect(createEmbeddedEngine(directory, { [option]: 0 })).rejects.toThrow(
      `${option} is no count; expected a whole number, at least 1, found 0`,
    );
  });
});

describe('close', () => {
  it('fails the calls under way, and later ones', async () => {
    const closing = await createEmbeddedEngine(directory, { workers: 1 });
    const running = closing.generate(textContext('late', 20), greedySampling(400));
    const failed = expect(running).rejects.toThrow('the engine was closed');
    await closing.close();
    await failed;
    await expect(closing.prefill(textContext('late', 20))).rejects.toThrow('the engine was closed');
  });
});
