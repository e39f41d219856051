import { performance } from 'node:perf_hooks';
import { describe, expect, it } from 'vitest';
import { singleBody } from '../../../src/engines/sglang/body.js';
import { HttpClient, readJson } from '../../../src/engines/sglang/http.js';
import { createImageEncoder } from '../../../src/engines/sglang/images.js';
import { NO_NEW_TOKENS } from '../../../src/engines/sglang/sampling.js';
import { REAL_SURROUNDINGS } from '../../../src/engines/sglang/surroundings.js';
import { EngineError, EngineUnavailableError } from '../../../src/errors.js';
import type { Fault } from './stand-in-faults.js';
import { CANDIDATES, context, numbers, picture, range, SAMPLING, sglang, standIn, truth, VISION } from './support.js';

const history = () => context('q1', range(1, 40));

/** Runs to its failure and says how long that took. */
async function failure(run: () => Promise<unknown>): Promise<{ error: EngineError; elapsedMs: number }> {
  const started = performance.now();
  const error = await run().then(
    () => null,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(EngineError);
  return { error: error as EngineError, elapsedMs: performance.now() - started };
}

describe('a reply that breaks a promise is an error, not a score', () => {
  const cases: readonly (readonly [Fault['kind'], RegExp])[] = [
    ['abort', /score row 0: the server ended the request; expected stop or length, found abort: Aborted/],
    ['null-logprob', /row 0, token 4: not a log-probability; .*found null/],
    ['shifted-ids', /row 0, token 1: log-prob of another token; expected id 32, found id 31/],
    ['extra-entry', /row 0: wrong number of log-probs; expected 6 .*found 7/],
    ['row-order', /score row 0: the server counted another prompt; expected 45 prompt tokens .*found 47/],
    ['weights', /score: the weights changed within a turn; expected weight version default, found another/],
    ['drift', /score row 0: the server counted another prompt; expected 45 .*found 43/],
  ];

  it.each(cases)('%s', async (kind, message) => {
    const server = await standIn();
    const { engine } = await sglang([server.url]);
    server.fault({ kind } as Fault);
    const { error, elapsedMs } = await failure(() => engine.score(history(), CANDIDATES));
    expect(error.message).toMatch(message);
    expect(error.message).toContain(server.url);
    expect(error).not.toBeInstanceOf(EngineUnavailableError);
    expect(elapsedMs).toBeLessThan(3_000);
    server.faults.clear();
    expect(numbers((await engine.score(history(), CANDIDATES)).rows)).toEqual(await truth(history(), CANDIDATES));
  });

  it('rows of equal length in the wrong order are caught by their ids', async () => {
    const server = await standIn();
    const { engine } = await sglang([server.url]);
    server.fault({ kind: 'row-order' });
    await expect(
      engine.score(history(), [
        [1, 2],
        [3, 4],
      ]),
    ).rejects.toThrow(/row 0, token 0: log-prob of another token; expected id 1, found id 3/);
  });

  it.each([
    ['null-logprob', /new token 7: not a log-probability/],
    ['other-output', /new token 0: log-prob of another token/],
    ['abort', /the server ended the request/],
  ] as const)('%s in an action', async (kind, message) => {
    const server = await standIn();
    const { engine } = await sglang([server.url]);
    server.fault({ kind });
    await expect(engine.generate(history(), SAMPLING)).rejects.toThrow(message);
  });

  it('text that drifted although the picture is right', async () => {
    const server = await standIn();
    const { engine } = await sglang([server.url]);
    server.fault({ kind: 'drift' });
    const withPicture = context('q1', [...range(1, 20), ...VISION, 6], [await picture(100, 80, 'red')]);
    await expect(engine.prefill(withPicture)).rejects.toThrow(
      /the text of the prompt drifted; expected 24 ids, found 22 .*SGLANG_MM_AVOID_RETOKENIZE=1/,
    );
  });
});

describe('a server that does not answer', () => {
  it('is given up after the limit, its request aborted by name', async () => {
    const server = await standIn();
    const { engine } = await sglang([server.url], { requestTimeoutMs: 150 });
    server.fault({ kind: 'hang' });
    const { error, elapsedMs } = await failure(() => engine.score(history(), CANDIDATES));
    expect(error.message).toMatch(/\/generate: the server lives but did not answer; expected an answer within 150 ms/);
    expect(elapsedMs).toBeGreaterThan(140);
    expect(elapsedMs).toBeLessThan(3_500);
    const names = server.requests.filter(({ path }) => path === '/abort_request').map(({ body }) => String(body.rid));
    const rid = String(server.requests.findLast(({ path }) => path === '/generate')?.body.rid);
    expect(names).toEqual([0, 1, 2].map((i) => `${rid}_${i}`));
  });

  it('is unavailable when it does not even answer the abort', async () => {
    const server = await standIn();
    const { engine } = await sglang([server.url], { requestTimeoutMs: 100 });
    server.fault({ kind: 'hang' });
    server.fault({ kind: 'hang', path: '/abort_request' });
    const { error, elapsedMs } = await failure(() => engine.prefill(history()));
    expect(error).toBeInstanceOf(EngineUnavailableError);
    expect(error.message).toMatch(/the server does not answer/);
    expect(elapsedMs).toBeLessThan(8_000);
  });

  it('cannot hang a run with ids that are already expanded: they are refused, and would be given up', async () => {
    const server = await standIn();
    const { engine } = await sglang([server.url]);
    const image = await picture(64, 64, 'red');
    const expanded = [...range(1, 20), 498, 500, 500, 500, 500, 499, 6];
    await expect(engine.prefill({ trajectory: 'q1', ids: expanded, images: [image], length: 27 })).rejects.toThrow(
      /expected 1 image_pad ids .*found 4/,
    );
    const http = new HttpClient({ url: server.url, surroundings: REAL_SURROUNDINGS });
    const images = await createImageEncoder({ kind: 'data' }, 1e6).encode([image]);
    const fields = { rid: 'expanded', sampling_params: NO_NEW_TOKENS, return_logprob: false };
    const body = () => singleBody({ ids: [Buffer.from(expanded.join())], images }, fields);
    const { error, elapsedMs } = await failure(() =>
      http.fetch({ method: 'POST', path: '/generate', body, timeoutMs: 150, idempotent: true }, readJson),
    );
    expect(error.message).toMatch(/did not answer; expected an answer within 150 ms/);
    expect(elapsedMs).toBeLessThan(3_500);
    await http.close();
  });

  it('ends a cancelled call at once and aborts it by name', async () => {
    const server = await standIn({ version: '0.5.18' });
    const { engine } = await sglang([server.url]);
    server.fault({ kind: 'hang' });
    const cancel = new AbortController();
    setTimeout(() => cancel.abort(new Error('enough')), 100);
    const withPicture = context('q1', [...range(1, 20), ...VISION, 6], [await picture(100, 80, 'red')]);
    const started = performance.now();
    await expect(engine.score(withPicture, CANDIDATES, { signal: cancel.signal })).rejects.toThrow('enough');
    expect(performance.now() - started).toBeLessThan(3_000);
    expect(server.requests.filter(({ path }) => path === '/abort_request').length).toBe(3);
  });

  it('aborts the other rows when one fails', async () => {
    const server = await standIn({ version: '0.5.18' });
    const { engine } = await sglang([server.url]);
    server.fault({ kind: 'hang', times: 2 });
    server.fault({ kind: 'status', status: 400, body: '{"error":{"message":"no"}}' });
    const withPicture = context('q1', [...range(1, 20), ...VISION, 6], [await picture(100, 80, 'red')]);
    const { error, elapsedMs } = await failure(() => engine.score(withPicture, CANDIDATES));
    expect(error.message).toMatch(/the server rejected the request, found 400 no/);
    expect(elapsedMs).toBeLessThan(3_500);
    expect(server.requests.filter(({ path }) => path === '/abort_request').length).toBe(2);
  });
});

describe('a server in trouble', () => {
  it('is waited for as long as it asks', async () => {
    const server = await standIn();
    const { engine, calls } = await sglang([server.url]);
    server.fault({ kind: 'status', status: 429, headers: { 'retry-after': '1' }, times: 1 });
    await engine.score(history(), CANDIDATES);
    expect(calls[0]?.attempts).toBe(2);
    expect(calls[0]?.retryMs).toBeGreaterThanOrEqual(990);
    expect(calls[0]?.retryMs).toBeLessThan(4_500);
  });

  it('is not waited for when it asks too much', async () => {
    const server = await standIn();
    const { engine } = await sglang([server.url]);
    server.fault({ kind: 'status', status: 429, headers: { 'retry-after': '600' }, body: '{"error":"busy"}' });
    const { error, elapsedMs } = await failure(() => engine.score(history(), CANDIDATES));
    expect(error).toBeInstanceOf(EngineUnavailableError);
    expect(error.message).toMatch(/refused the request, found 429 busy/);
    expect(elapsedMs).toBeLessThan(2_000);
  });

  it('may flap', async () => {
    const server = await standIn();
    const { engine, calls } = await sglang([server.url]);
    server.fault({ kind: 'status', status: 503, times: 2 });
    await engine.score(history(), CANDIDATES);
    expect(calls[0]?.attempts).toBe(3);
  });

  it('is unavailable when it flaps for too long', async () => {
    const server = await standIn();
    const { engine } = await sglang([server.url]);
    server.fault({ kind: 'status', status: 503, body: '{"object":"error","message":"draining","code":503}' });
    const { error } = await failure(() => engine.score(history(), CANDIDATES));
    expect(error).toBeInstanceOf(EngineUnavailableError);
    expect(error.message).toMatch(/found 503 draining \(sent 3 times\)/);
  });

  it('closes its connection after a 500, and the request is sent once more on a fresh one', async () => {
    const server = await standIn();
    const { engine, calls } = await sglang([server.url]);
    server.fault({ kind: 'status', status: 500, body: 'Internal Server Error', close: true, times: 1 });
    await engine.prefill(history());
    expect(calls[0]?.attempts).toBe(2);
    server.fault({ kind: 'status', status: 500, body: 'Internal Server Error', close: true });
    const { error } = await failure(() => engine.prefill(context('q2', range(1, 50))));
    expect(error.message).toMatch(/found 500 Internal Server Error \(sent 2 times\)/);
  });

  it('never draws a sample twice, but may repeat a greedy action', async () => {
    const server = await standIn();
    const { engine } = await sglang([server.url]);
    const sent = () => server.requests.filter(({ path }) => path === '/generate').length;
    server.fault({ kind: 'drop', times: 1 });
    const { error } = await failure(() => engine.generate(history(), { ...SAMPLING, temperature: 1 }));
    expect(error).toBeInstanceOf(EngineUnavailableError);
    expect(error.message).toMatch(/the connection broke before an answer/);
    expect(sent()).toBe(2);
    server.fault({ kind: 'drop', times: 1 });
    await engine.generate(history(), SAMPLING);
    expect(sent()).toBe(4);
  });

  it('repeats a seeded sample where the server honours seeds', async () => {
    const server = await standIn({ serverInfo: { enable_deterministic_inference: true } });
    const { engine } = await sglang([server.url]);
    server.fault({ kind: 'drop', times: 1 });
    await expect(engine.generate(history(), { ...SAMPLING, temperature: 1 })).resolves.toMatchObject({ finishReason: 'length' });
  });

  it('tells no token twice when a stream is cut', async () => {
    const server = await standIn();
    const { engine } = await sglang([server.url]);
    server.fault({ kind: 'cut' });
    const told: number[] = [];
    const { error } = await failure(() => engine.generate(history(), SAMPLING, { onToken: ({ id }) => told.push(id) }));
    expect(error).toBeInstanceOf(EngineUnavailableError);
    expect(told.length).toBeLessThanOrEqual(2);
    expect(server.requests.filter(({ path }) => path === '/generate').length).toBe(2);
  });

  it('dies in the middle of a batch', async () => {
    const server = await standIn({ version: '0.5.18' });
    const { engine } = await sglang([server.url]);
    server.fault({ kind: 'die', after: 1 });
    const withPicture = context('q1', [...range(1, 20), ...VISION, 6], [await picture(100, 80, 'red')]);
    const { error, elapsedMs } = await failure(() => engine.score(withPicture, CANDIDATES));
    expect(error).toBeInstanceOf(EngineUnavailableError);
    expect(error.message).toContain(server.url);
    expect(elapsedMs).toBeLessThan(4_500);
    // From now on nobody waits for it.
    const again = await failure(() => engine.prefill(context('q2', range(1, 30))));
    expect(again.error.message).toMatch(/no server is left/);
    expect(again.elapsedMs).toBeLessThan(1_000);
  });
});

describe('keys', () => {
  it('are sent, and a missing one is named without being shown', async () => {
    const server = await standIn({ apiKey: 'api-secret', adminKey: 'admin-secret' });
    const { error } = await failure(() => sglang([server.url], { apiKey: 'wrong' }));
    expect(error.message).toMatch(/\/model_info: the server wants a key, found 401 Unauthorized. Set the API key/);
    expect(error.message).not.toContain('wrong');
    const { engine } = await sglang([server.url], { apiKey: 'api-secret', adminKey: 'admin-secret', requestTimeoutMs: 100 });
    server.fault({ kind: 'hang' });
    await failure(() => engine.prefill(history()));
    const [abort] = server.requests.filter(({ path }) => path === '/abort_request');
    expect(abort?.headers.authorization).toBe('Bearer admin-secret');
  });
});
