import { appendFile, mkdtemp, readFile, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { EngineUnavailableError, UsageError } from '../../src/errors.js';
import { createBreaker } from '../../src/evaluation/breaker.js';
import { runEpisode } from '../../src/evaluation/episode.js';
import { readEpisodes } from '../../src/evaluation/episodes-file.js';
import { type Episode, episodeSchema } from '../../src/evaluation/records.js';
import { type RunOptions, runQuestions } from '../../src/evaluation/run.js';
import { RunFolder } from '../../src/evaluation/run-folder.js';
import { exactJudge } from '../../src/judges/exact.js';
import type { Engine } from '../../src/types.js';
import { answer, call, type TestAgentOptions, testAgent, testBenchmark } from '../support/agent.js';

const script = {
  '*': [
    { candidate: 4, action: call('text_search_tool', { query: 'x' }) },
    { candidate: 5, action: answer('Oslo') },
  ],
};
const tools = { textSearch: { name: 'memory', search: async () => [{ text: 'Oslo' }] } };

async function options(count: number, agent: Partial<TestAgentOptions> = {}): Promise<RunOptions> {
  const benchmark = await testBenchmark(count);
  return {
    agent: await testAgent({ script, tools, ...agent }),
    benchmark,
    entries: benchmark.entries,
    judge: exactJudge(),
    clock: () => performance.now(),
    seed: 7,
    concurrency: 4,
    breaker: createBreaker({ unavailableInARow: 3, maxErrorRate: null }),
  };
}

async function episodes(run: RunOptions): Promise<Episode[]> {
  const all: Episode[] = [];
  for await (const { episode } of runQuestions(run)) all.push(episode);
  return all;
}

const withoutTimes = ({ timingMs, turns, ...rest }: Episode) => ({ ...rest, turns: turns.map(({ timingMs, ...turn }) => turn) });
const byId = (all: Episode[]) => [...all].sort((a, b) => Number(a.id.slice(1)) - Number(b.id.slice(1)));

describe('runEpisode', () => {
  it('leaves a record that satisfies its own schema and whose times add up', async () => {
    let now = 0;
    const run = { ...(await options(1)), clock: () => now++ };
    const { episode } = await runEpisode({ id: 'q0', type: 'even' }, run);
    expect(episodeSchema.parse(JSON.parse(JSON.stringify(episode)))).toEqual(episode);
    expect(episode).toMatchObject({ status: 'answer', answer: 'Oslo', correct: true });
    const { total, system, media, judge, orchestration } = episode.timingMs;
    const inTurns = episode.turns.flatMap(({ timingMs }) => Object.values(timingMs)).reduce((sum, ms) => sum + ms, 0);
    expect(Math.abs(total - (system + media + judge + orchestration + inTurns))).toBeLessThanOrEqual(2);
  });

  it('records a surprise as an error without a verdict, with the turns before it', async () => {
    let calls = 0;
    const wrap = (engine: Engine): Engine => ({
      ...engine,
      generate: (...args) => (++calls === 2 ? Promise.reject(new EngineUnavailableError('gone')) : engine.generate(...args)),
    });
    const run = await options(1, { wrap });
    const { episode } = await runEpisode({ id: 'q0', type: 'even' }, run);
    expect(episode).toMatchObject({ status: 'error', correct: null, error: { kind: 'EngineUnavailableError', message: 'gone' } });
    expect(episode.turns.length).toBe(1);
    expect(episode.ids.length).toBeGreaterThan(episode.turns[0]!.history.length);
  });

  it('counts a question over its time limit as an error', async () => {
    const wrap = (engine: Engine): Engine => ({
      ...engine,
      score: (_context, _rows, call) =>
        new Promise((_, reject) => call?.signal?.addEventListener('abort', () => reject(call.signal?.reason))),
    });
    const { episode } = await runEpisode({ id: 'q0', type: 'even' }, { ...(await options(1, { wrap })), questionLimitMs: 30 });
    expect(episode).toMatchObject({ status: 'error', correct: null, error: { kind: 'TimeoutError' } });
  });
});

describe('runQuestions', () => {
  it('gives the same records at any concurrency, but for times', async () => {
    const serial = await episodes({ ...(await options(12)), concurrency: 1 });
    const parallel = await episodes({ ...(await options(12)), concurrency: 4 });
    expect(byId(parallel).map(withoutTimes)).toEqual(byId(serial).map(withoutTimes));
  });

  it('starts no further question once drained, and ends those in flight', async () => {
    const drain = new AbortController();
    const run = { ...(await options(20)), concurrency: 2, drain: drain.signal };
    const statuses: string[] = [];
    for await (const { episode } of runQuestions(run)) {
      statuses.push(episode.status);
      drain.abort();
    }
    expect(statuses.length).toBeLessThanOrEqual(3);
    expect(new Set(statuses)).toEqual(new Set(['answer']));
  });

  it('stops and names the engine when it is gone', async () => {
    const wrap = (engine: Engine): Engine => ({
      ...engine,
      score: () => Promise.reject(new EngineUnavailableError('no reply', { where: 'http://127.0.0.1:1' })),
    });
    const run = await options(50, { wrap });
    await expect(episodes(run)).rejects.toThrow(/3 questions in a row.*http:\/\/127\.0\.0\.1:1/);
  });
});

describe('RunFolder', () => {
  const manifest = { identity: { a: 1 } };
  const open = (path: string, onKept = (_: Episode) => {}) =>
    RunFolder.open(path, manifest, { fresh: false, retryErrors: false, onKept });

  async function finishedRun(): Promise<{ path: string; all: Episode[] }> {
    const path = join(await mkdtemp(join(tmpdir(), 'ssr-run-')), 'run');
    const folder = await open(path);
    const run = await options(5);
    for await (const { episode, images } of runQuestions(run)) await folder.append(episode, images);
    await folder.sort(run.entries.map(({ id }) => id));
    await folder.close();
    const all: Episode[] = [];
    for await (const episode of readEpisodes(join(path, 'episodes.jsonl'))) all.push(episode);
    return { path, all };
  }

  it('holds every episode in the order of the plan', async () => {
    const { all } = await finishedRun();
    expect(all.map(({ id }) => id)).toEqual(['q0', 'q1', 'q2', 'q3', 'q4']);
  });

  it('keeps whole lines and owes a torn one again', async () => {
    const { path } = await finishedRun();
    const file = join(path, 'episodes.jsonl');
    await truncate(file, (await readFile(file)).length - 10);
    const kept: string[] = [];
    const folder = await open(path, ({ id }) => kept.push(id));
    expect(kept).toEqual(['q0', 'q1', 'q2', 'q3']);
    expect([folder.has('q3'), folder.has('q4')]).toEqual([true, false]);
    const run = await options(5);
    const { episode, images } = await runEpisode({ id: 'q4', type: 'even' }, run);
    await folder.append(episode, images);
    await folder.sort(run.entries.map(({ id }) => id));
    await folder.close();
    const ids: string[] = [];
    for await (const { id } of readEpisodes(file)) ids.push(id);
    expect(ids).toEqual(['q0', 'q1', 'q2', 'q3', 'q4']);
  });

  it('drops repeated lines and owes errors again', async () => {
    const { path, all } = await finishedRun();
    const file = join(path, 'episodes.jsonl');
    await appendFile(file, `${JSON.stringify(all[0])}\n`);
    const failed = { ...all[1]!, status: 'error', correct: null, error: { kind: 'x', message: 'y' } };
    await writeFile(file, (await readFile(file, 'utf8')).replace(JSON.stringify(all[1]), JSON.stringify(failed)));
    const kept: string[] = [];
    const folder = await open(path, ({ id }) => kept.push(id));
    expect(kept).toEqual(['q0', 'q2', 'q3', 'q4']);
    await folder.close();
  });

  it('refuses another run by name, and a folder that another process holds', async () => {
    const { path } = await finishedRun();
    const other = RunFolder.open(path, { identity: { a: 2 } }, { fresh: false, retryErrors: false, onKept: () => {} });
    await expect(other).rejects.toThrow(/holds another run: a differs; expected 2, found 1/);
    const first = await open(path);
    await expect(open(path)).rejects.toThrow(UsageError);
    await first.close();
    await (await open(path)).close();
  });
});
