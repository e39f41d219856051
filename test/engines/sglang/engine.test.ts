import { describe, expect, it } from 'vitest';
import { createHashEngine } from './hash-engine.js';
import {
  CANDIDATES,
  context,
  modelFolder,
  numbers,
  PAD,
  picture,
  range,
  SAMPLING,
  sglang,
  standIn,
  truth,
  VISION,
} from './support.js';

const generateBodies = (server: { requests: readonly { path: string; body: Record<string, unknown> }[] }) =>
  server.requests
    .filter(({ path }) => path === '/generate')
    .map(({ body }) => body)
    .slice(1); // the first is the preflight's token

describe('scoring', () => {
  it('brings back the log-probs of the engine behind the server, from one batch', async () => {
    const server = await standIn();
    const { engine } = await sglang([server.url]);
    const history = context('q1', range(1, 40));
    const { rows } = await engine.score(history, CANDIDATES);
    expect(numbers(rows)).toEqual(await truth(history, CANDIDATES));
    const [body, ...more] = generateBodies(server);
    expect(more).toEqual([]);
    expect(body?.input_ids).toEqual(CANDIDATES.map((ids) => [...history.ids, ...ids]));
    expect(body).toMatchObject({
      logprob_start_len: 39,
      return_logprob: true,
      extra_key: 'test',
      sampling_params: { max_new_tokens: 0 },
    });
  });

  it.each(['0.5.13.post1', '0.5.18', '0.0.0.dev0'])(
    'sends one request per row where %s cannot batch pictures',
    async (version) => {
      const server = await standIn({ version });
      const { engine } = await sglang([server.url]);
      const images = [await picture(100, 80, 'red'), await picture(64, 64, 'blue', 'jpeg')];
      const history = context('q1', [...range(1, 20), ...VISION, 5, ...VISION, 6, 7], images);
      const { rows } = await engine.score(history, CANDIDATES);
      expect(rows.map((row) => row.map(({ id }) => id))).toEqual(CANDIDATES);
      expect(generateBodies(server).map(({ input_ids: ids }) => (ids as number[]).length)).toEqual([29 + 5, 29 + 2, 29 + 7]);
      expect(history.length).toBe(29 - 2 + 6 + 4); // 3 x 2 and 2 x 2 tokens stand for the two pads
    },
  );

  it('gives the same numbers with pictures in rows and in a batch', async () => {
    const image = await picture(100, 80, 'red');
    const history = context('q1', [...range(1, 20), ...VISION, 6], [image]);
    const scores = [];
    for (const version of ['0.5.18', '0.5.19']) {
      const server = await standIn({ version });
      const { engine } = await sglang([server.url]);
      scores.push(numbers((await engine.score(history, CANDIDATES)).rows));
      expect(generateBodies(server).length).toBe(version === '0.5.18' ? 3 : 1);
    }
    expect(scores[0]).toEqual(await truth(history, CANDIDATES));
    expect(scores[1]).toEqual(scores[0]);
  });

  it('falls back to rows once after a 500 to a batch, and remembers', async () => {
    const server = await standIn();
    const { engine, calls } = await sglang([server.url]);
    server.fault({ kind: 'status', status: 500, body: 'Internal Server Error', close: true, times: 1 });
    const history = context('q1', [...range(1, 20), ...VISION, 6], [await picture(100, 80, 'red')]);
    for (let i = 0; i < 2; i++)
      expect(numbers((await engine.score(history, CANDIDATES)).rows)).toEqual(await truth(history, CANDIDATES));
    expect(generateBodies(server).length).toBe(1 + 3 + 3);
    expect(calls[0]).toMatchObject({ requests: 3, attempts: 4 });
    expect(calls[0]?.retryMs).toBeGreaterThan(0);
    expect(calls[1]).toMatchObject({ requests: 3, attempts: 3, retryMs: 0 });
  });

  it('refuses what would kill the server or cannot be read back, before sending it', async () => {
    const server = await standIn();
    const { engine } = await sglang([server.url]);
    const before = server.requests.length;
    const history = context('q1', range(1, 10));
    await expect(engine.score(history, [[512]])).rejects.toThrow(
      /continuation 0, position 0: an id outside the vocabulary; expected ids in \[0, 512\), found 512/,
    );
    await expect(engine.score(history, [[1], []])).rejects.toThrow(/continuation 1: no ids to send/);
    await expect(engine.score(history, [[511]])).rejects.toThrow(/cannot be scored/);
    await expect(engine.score(history, [[1, PAD]])).rejects.toThrow(/no vision id/);
    await expect(engine.score(context('q1', [3, 4.5]), [[1]])).rejects.toThrow(/position 1: an id outside the vocabulary/);
    await expect(engine.prefill({ trajectory: 'q1', ids: [...range(1, 20), PAD], images: [], length: 21 })).rejects.toThrow(
      /image tokens and pictures differ in number/,
    );
    expect(server.requests.length).toBe(before);
  });

  it('refuses a context whose length the server counts otherwise', async () => {
    const { engine } = await sglang([(await standIn()).url]);
    await expect(engine.prefill({ trajectory: 'q1', ids: range(1, 20), images: [], length: 19 })).rejects.toThrow(
      /expected 19 prompt tokens .*found 20/,
    );
  });
});

describe('cache and usage', () => {
  it('finds h_t cached but for its last token after a prefill', async () => {
    const server = await standIn();
    const { engine, calls } = await sglang([server.url]);
    const history = context('q1', range(1, 40));
    expect(await engine.prefill(history)).toMatchObject({
      promptTokens: 40,
      cachedTokens: 0,
      computedTokens: 40,
      imagesEncoded: 0,
    });
    const { usage } = await engine.score(history, CANDIDATES);
    expect(usage).toMatchObject({ promptTokens: 40, cachedTokens: 3 * 39, computedTokens: 3 + 5 + 2 + 7, imagesEncoded: 0 });
    history.append(CANDIDATES[0] as number[]);
    const { usage: action, tokens } = await engine.generate(history, SAMPLING);
    expect(action).toMatchObject({ promptTokens: 45, cachedTokens: 44, computedTokens: 1 + tokens.length - 1, imagesEncoded: 0 });
    expect(calls.map(({ verb, cachedTokens }) => [verb, cachedTokens])).toMatchObject([
      ['prefill', 0],
      ['score', 117],
      ['generate', 44],
    ]);
  });

  it('rounds down to the page', async () => {
    const server = await standIn({ pageSize: 16 });
    const { engine } = await sglang([server.url]);
    const history = context('q1', range(1, 40));
    await engine.prefill(history);
    expect((await engine.score(history, CANDIDATES)).usage.cachedTokens).toBe(3 * 32);
  });

  it('shares nothing between isolation keys', async () => {
    const server = await standIn();
    const history = context('q1', range(1, 40));
    for (const isolationKey of ['a', 'b']) {
      const { engine } = await sglang([server.url], { isolationKey });
      expect((await engine.prefill(history)).cachedTokens).toBe(0);
    }
  });

  it('sends a picture as PNG with every request, encoded once, and counts its bytes', async () => {
    const server = await standIn({ metrics: true });
    const { engine, calls } = await sglang([server.url]);
    const history = context('q1', [...range(1, 20), ...VISION, 6], [await picture(640, 480, 'green', 'jpeg')]);
    expect((await engine.prefill(history)).imagesEncoded).toBe(1);
    await engine.score(history, CANDIDATES);
    expect(calls.map(({ imagesSent }) => imagesSent)).toEqual([1, 3]);
    expect(calls[1]?.imageBytes).toBe(3 * (calls[0]?.imageBytes ?? 0));
    for (const { bytesUploaded, imageBytes, totalMs, serverMs, forwardMs, queueMs } of calls) {
      expect(bytesUploaded).toBeGreaterThan(imageBytes);
      expect(totalMs).toBeGreaterThanOrEqual(serverMs ?? Number.NaN);
      expect(serverMs).toBeGreaterThanOrEqual(forwardMs ?? Number.NaN);
      expect(queueMs).toBeLessThan(1_000);
    }
    const sent = generateBodies(server).map(({ image_data: images }) => images);
    expect(sent).toEqual([
      ['data:image/png;base64,iVBORw0KGgoAAAANSU'],
      [0, 1, 2].map(() => ['data:image/png;base64,iVBORw0KGgoAAAANSU']),
    ]);
    // The server's own ids are compared once per picture.
    expect(generateBodies(server).map((body) => body.return_prompt_token_ids)).toEqual([true, undefined]);
  });
});

describe('prefill modes', () => {
  const turn = async (prefill: 'auto' | 'on' | 'off') => {
    const server = await standIn();
    const { engine, calls } = await sglang([server.url], { prefill });
    const system = range(1, 30);
    await engine.prefill(context('run', system), { shared: true });
    for (const trajectory of ['q1', 'q2']) {
      const history = context(trajectory, system);
      await engine.prefill(history);
      history.append(range(50, 20));
      await engine.prefill(history);
      await engine.score(history, CANDIDATES);
      await engine.release(trajectory);
    }
    return calls.filter(({ verb }) => verb === 'prefill').map(({ trajectory, promptTokens }) => `${trajectory}:${promptTokens}`);
  };

  it('auto computes what is new, once', async () => {
    expect(await turn('auto')).toEqual(['run:30', 'q1:50', 'q2:50']);
  });

  it('on computes whenever asked', async () => {
    expect(await turn('on')).toEqual(['run:30', 'q1:30', 'q1:50', 'q2:30', 'q2:50']);
  });

  it('off leaves h_t to the scoring rows', async () => {
    expect(await turn('off')).toEqual(['run:30']);
  });

  it('off still computes s once when nobody shared it', async () => {
    const server = await standIn();
    const { engine, calls } = await sglang([server.url], { prefill: 'off' });
    for (const trajectory of ['q1', 'q2']) await engine.prefill(context(trajectory, range(1, 30)));
    expect(calls.map(({ trajectory }) => trajectory)).toEqual(['q1']);
  });

  it('auto leaves out a prefill of a few tokens, not one of a picture', async () => {
    const server = await standIn();
    const { engine, calls } = await sglang([server.url]);
    const history = context('q1', range(1, 30));
    await engine.prefill(history);
    history.append([9, 9, 9]);
    await engine.prefill(history);
    expect(calls.length).toBe(1);
    history.append([...VISION, 4], [await picture(64, 64, 'red')]);
    await engine.prefill(history);
    expect(calls.length).toBe(2);
  });
});

describe('actions', () => {
  it('are what the engine behind the server generates, greedy and sampled', async () => {
    const server = await standIn();
    const { engine } = await sglang([server.url]);
    const history = context('q1', range(1, 40));
    for (const sampling of [SAMPLING, { ...SAMPLING, temperature: 1, bannedIds: [...Array(100).keys()] }]) {
      const { tokens, finishReason } = await engine.generate(history, sampling);
      const expected = await createHashEngine().generate(history, sampling);
      expect(tokens).toEqual(expected.tokens);
      expect(finishReason).toBe(expected.finishReason);
    }
    const [, sampled] = generateBodies(server);
    expect(sampled?.sampling_params).toMatchObject({
      temperature: 1,
      top_p: 1,
      top_k: -1,
      min_p: 0,
      sampling_seed: 7,
      stop_token_ids: [497],
      repetition_penalty: 1,
    });
  });

  it('end with the stop id when that was drawn', async () => {
    const server = await standIn();
    const { engine } = await sglang([server.url]);
    const history = context('q1', range(1, 40));
    const first = (await engine.generate(history, SAMPLING)).tokens[0]?.id as number;
    const { tokens, finishReason } = await engine.generate(history, { ...SAMPLING, stopIds: [first] });
    expect([tokens.map(({ id }) => id), finishReason]).toEqual([[first], 'stop']);
  });

  it('are told token by token when asked, and are the same as untold', async () => {
    const server = await standIn();
    const { engine } = await sglang([server.url]);
    const history = context('q1', range(1, 40));
    const told: unknown[] = [];
    const streamed = await engine.generate(history, SAMPLING, { onToken: (token) => told.push(token) });
    expect(told).toEqual(streamed.tokens);
    expect(streamed.tokens).toEqual((await engine.generate(history, SAMPLING)).tokens);
    expect(generateBodies(server)[0]?.stream).toBe(true);
  });
});

describe('several calls of a turn', () => {
  it('must see one set of weights, and the next turn may see another', async () => {
    const server = await standIn();
    const { engine } = await sglang([server.url]);
    const history = context('q1', range(1, 40));
    await engine.prefill(history);
    server.fault({ kind: 'weights', times: 1 });
    await expect(engine.score(history, CANDIDATES)).rejects.toThrow(
      /the weights changed within a turn; expected weight version default, found another/,
    );
    await engine.release('q1');
    await engine.score(history, CANDIDATES);
    await engine.generate(history, SAMPLING);
    server.fault({ kind: 'weights', times: 1 });
    await expect(engine.prefill(context('q1', range(1, 60)))).resolves.toMatchObject({ promptTokens: 60 });
  });
});

describe('description', () => {
  it('is the model folder and the server together', async () => {
    const server = await standIn();
    const { engine } = await sglang([server.url], { modelFolder: await modelFolder() });
    expect(await engine.describe()).toEqual({
      engine: 'sglang',
      version: '0.5.19',
      model: 'hash',
      weights: 'default',
      vocabularySize: 512,
      contextLength: 4090,
      geometry: { patchSize: 16, mergeSize: 2, minPixels: 4096, maxPixels: 65536 },
    });
  });
});
