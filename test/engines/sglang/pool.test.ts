import { describe, expect, it } from 'vitest';
import { Breaker } from '../../../src/engines/sglang/breaker.js';
import { REAL_SURROUNDINGS } from '../../../src/engines/sglang/surroundings.js';
import { EngineUnavailableError } from '../../../src/errors.js';
import { createHashEngine } from './hash-engine.js';
import { startStandIn } from './stand-in.js';
import { CANDIDATES, context, PAD, range, sglang, standIn } from './support.js';

const trajectoriesOf = (server: { requests: readonly { path: string; headers: Record<string, unknown> }[] }) => [
  ...new Set(server.requests.filter(({ path }) => path === '/generate').map(({ headers }) => headers['x-smg-routing-key'])),
];

describe('several servers', () => {
  it('keep a trajectory where its cache lives, and share the work', async () => {
    const servers = [await standIn(), await standIn()];
    const { engine } = await sglang(servers.map(({ url }) => url));
    for (let turn = 0; turn < 3; turn++) {
      for (const name of ['q1', 'q2', 'q3', 'q4']) await engine.score(context(name, range(1, 40 + turn)), CANDIDATES);
    }
    expect(servers.map((server) => trajectoriesOf(server).filter((name) => name !== undefined))).toEqual([
      ['q1', 'q3'],
      ['q2', 'q4'],
    ]);
  });

  it('fill the place of a finished trajectory', async () => {
    const servers = [await standIn(), await standIn()];
    const { engine } = await sglang(servers.map(({ url }) => url));
    await engine.prefill(context('q1', range(1, 40)));
    await engine.release('q1');
    await engine.prefill(context('q2', range(2, 40)));
    expect(trajectoriesOf(servers[0] as (typeof servers)[0])).toContain('q2');
  });

  it('all compute a shared prefix', async () => {
    const servers = [await standIn(), await standIn()];
    const { engine } = await sglang(servers.map(({ url }) => url));
    expect(await engine.prefill(context('run', range(1, 40)), { shared: true })).toMatchObject({ computedTokens: 80 });
    for (const name of ['q1', 'q2'])
      expect((await engine.score(context(name, range(1, 40)), CANDIDATES)).usage.cachedTokens).toBe(3 * 39);
  });

  it('lose only what the dead one held: new trajectories go to the other', async () => {
    const servers = [await standIn(), await standIn()];
    const [first, second] = servers as [(typeof servers)[0], (typeof servers)[0]];
    const { engine } = await sglang([first.url, second.url]);
    await engine.prefill(context('q1', range(1, 40)));
    await first.die();
    const lost = await engine.score(context('q1', range(1, 40)), CANDIDATES).catch((error: unknown) => error);
    expect(lost).toBeInstanceOf(EngineUnavailableError);
    expect((lost as Error).message).toMatch(
      new RegExp(`${first.url}/generate: cannot reach the server, found .*ECONNREFUSED.*\\(sent 3 times\\)`),
    );
    await expect(engine.prefill(context('q1', range(1, 41)))).rejects.toThrow(
      /the trajectory's server has died.*started afresh on another server/,
    );
    await engine.release('q1');
    for (const name of ['q1', 'q2']) await engine.score(context(name, range(1, 40)), CANDIDATES);
    expect(trajectoriesOf(second)).toEqual(expect.arrayContaining(['q1', 'q2']));
    await second.die();
    await engine.prefill(context('q2', range(1, 60))).catch(() => undefined);
    await expect(engine.prefill(context('q3', range(1, 40)))).rejects.toThrow(
      new RegExp(`${first.url}, ${second.url}: no server is left.*resume the run`),
    );
  });

  it('take a server back when it has recovered', async () => {
    let now = 0;
    const first = await standIn();
    const second = await standIn();
    const surroundings = { ...REAL_SURROUNDINGS, clock: () => now };
    const { engine } = await sglang([first.url, second.url], { surroundings, breaker: { failures: 3, coolDownMs: 1_000 } });
    await first.die();
    await engine.prefill(context('q1', range(1, 40))).catch(() => undefined);
    await engine.release('q1');
    const again = await startStandIn(createHashEngine(), { imagePadId: PAD }, Number(new URL(first.url).port));
    await engine.prefill(context('q2', range(1, 40)));
    expect(trajectoriesOf(again)).toEqual([]);
    now = 2_000;
    await engine.prefill(context('q3', range(1, 40)));
    expect(trajectoriesOf(again)).toEqual(['q3']);
    await again.close();
  });

  it('must serve the same weights', async () => {
    const servers = [await standIn(), await standIn({ modelInfo: { weight_version: 'step-2' } })];
    await expect(sglang(servers.map(({ url }) => url))).rejects.toThrow(
      /servers with different weights cannot share a run; expected weights default, found step-2/,
    );
  });

  it('pin a trajectory to a replica of a data-parallel server', async () => {
    const server = await standIn({ serverInfo: { dp_size: 2 } });
    const { engine } = await sglang([server.url]);
    for (const name of ['q1', 'q2', 'q1', 'q2']) await engine.score(context(name, range(1, 40)), CANDIDATES);
    const ranks = server.requests.filter(({ path }) => path === '/generate').map(({ body }) => body.routed_dp_rank);
    expect(ranks).toEqual([undefined, 0, 1, 0, 1]);
  });

  it('never get more requests at a time than their budget', async () => {
    const server = await standIn();
    const { engine, calls } = await sglang([server.url], { requestLimit: 2 });
    await Promise.all(
      range(1, 8).map((i) =>
        engine.generate(context(`q${i}`, range(i, 30)), {
          maxNewTokens: 50,
          temperature: 0,
          topP: 1,
          topK: 0,
          seed: 1,
          stopIds: [],
          bannedIds: [],
        }),
      ),
    );
    expect(calls.filter(({ queueMs }) => queueMs > 1).length).toBeGreaterThanOrEqual(5);
  });
});

describe('breaker', () => {
  it('opens after failures in a row, allows a trial after a while, and closes on success', () => {
    let now = 0;
    const breaker = new Breaker({ failures: 2, coolDownMs: 100 }, () => now);
    breaker.failed('a', false);
    breaker.succeeded();
    breaker.failed('b', false);
    expect(breaker.state).toBe('closed');
    breaker.failed('c', false);
    expect([breaker.state, breaker.lastFailure]).toEqual(['open', 'c']);
    now = 100;
    expect(breaker.state).toBe('trial');
    breaker.failed('d', false);
    expect(breaker.state).toBe('open');
    now = 200;
    breaker.succeeded();
    expect(breaker.state).toBe('closed');
    breaker.failed('gone', true);
    expect(breaker.state).toBe('open');
  });
});
