import { mkdtemp, readFile, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { readEpisodes } from '../../src/evaluation/episodes-file.js';
import type { Episode } from '../../src/evaluation/records.js';
import type { Summary } from '../../src/reports/summary.js';
import { ssr } from './run.js';

const sampled = ['--sample', '16', '--tau', '0.3', '--temperature', '0.7', '--seed', '11'];
let scratch: string;

beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'ssr-eval-'));
});

const evaluate = (output: string, ...args: string[]) =>
  ssr('eval', '--benchmark', 'micro', '--split', 'dev', '--output', join(scratch, output), ...args);

async function records(output: string): Promise<Omit<Episode, 'timingMs'>[]> {
  const all: Omit<Episode, 'timingMs'>[] = [];
  for await (const { timingMs: _, turns, ...rest } of readEpisodes(join(scratch, output, 'episodes.jsonl'))) {
    all.push({ ...rest, turns: turns.map((turn) => ({ ...turn, timingMs: {} as Episode['turns'][number]['timingMs'] })) });
  }
  return all;
}

describe('ssr eval on the embedded engine', () => {
  it('gives identical records for the same seed at concurrency 1 and 4, and others for another seed', async () => {
    expect((await evaluate('serial', ...sampled, '--concurrency', '1')).exitCode).toBe(0);
    expect((await evaluate('parallel', ...sampled, '--concurrency', '4', '--workers', '2')).exitCode).toBe(0);
    const serial = await records('serial');
    expect(serial.length).toBe(16);
    expect(await records('parallel')).toEqual(serial);
    expect((await evaluate('other', '--ids', await idsFile(serial), ...sampled.slice(2, -1), '12')).exitCode).toBe(0);
    expect(await records('other')).not.toEqual(serial);
  });

  it('computes no token twice', async () => {
    const { stdout } = await evaluate('work', '--sample', '24', '--json');
    const { work, success } = JSON.parse(stdout) as Summary;
    expect(success.overall.n).toBe(24);
    expect(work.ratio).toBeLessThanOrEqual(1.01);
    expect(work.ratio).toBeGreaterThan(0.9);
  });

  it('leaves records from which scores, choice and log q can be computed again', async () => {
    const { library } = JSON.parse(await readFile(join(scratch, 'serial/manifest.json'), 'utf8')) as {
      library: { candidates: { id: string; ids: number[] }[] };
    };
    for (const { turns, ids } of await records('serial')) {
      for (const { history, reasoning } of turns) {
        const selection = reasoning.selection!;
        const scores = selection.tokenLogprobs.map((row) => row.reduce((sum, value) => sum + value, 0) / row.length);
        for (const [i, score] of scores.entries()) expect(selection.scores[i]).toBeCloseTo(score, 12);
        const weights = scores.map((score) => Math.exp(score / 0.3));
        const q = weights[selection.index]! / weights.reduce((sum, weight) => sum + weight, 0);
        expect(selection.logProbability).toBeCloseTo(Math.log(q), 9);
        const chosen = library.candidates[selection.index]!;
        expect(chosen.id).toBe(selection.candidate);
        expect(ids.slice(history.length, history.length + reasoning.length)).toEqual(chosen.ids);
      }
    }
  });

  it('resumes what a crash tore, refuses other settings, and starts afresh when told', async () => {
    const whole = await records('serial');
    const file = join(scratch, 'serial/episodes.jsonl');
    await truncate(file, Math.floor((await readFile(file)).length / 2));
    const other = await evaluate('serial', ...sampled, '--alpha', '0.5');
    expect(other).toMatchObject({ exitCode: 1 });
    expect(other.stderr).toMatch(/holds another run: settings\.alpha differs; expected 0\.5, found 1\..*--fresh/);
    const resumed = await evaluate('serial', ...sampled, '--concurrency', '2');
    expect(resumed.stderr).toMatch(/Resuming: \d+ of 16 questions are done/);
    expect(await records('serial')).toEqual(whole);
    const fresh = await evaluate('serial', '--sample', '2', '--fresh');
    expect(fresh.exitCode).toBe(0);
    expect((await records('serial')).length).toBe(2);
  });

  it('replays its tools token for token, and strictly or not at all', async () => {
    const store = ['--tool-store', join(scratch, 'store')];
    const questions = ['--sample', '16', '--seed', '3'];
    expect((await evaluate('recorded', ...questions, ...store, '--tools', 'record')).exitCode).toBe(0);
    expect((await evaluate('replayed', ...questions, ...store, '--tools', 'strict')).exitCode).toBe(0);
    expect(await records('replayed')).toEqual(await records('recorded'));
    const others = await evaluate('unrecorded', '--sample', '16', '--seed', '4', ...store, '--tools', 'strict');
    expect(others.exitCode).toBe(3);
    expect(others.stderr).toMatch(/not recorded.*the same command resumes the run/);
  });

  it('ends with code 100 below the wanted success', async () => {
    const { exitCode } = await evaluate(
      'low',
      '--sample',
      '4',
      '--min-success',
      '90',
      '--library',
      'configs/libraries/one.json',
      '--max-turns',
      '1',
    );
    expect(exitCode).toBe(100);
  });

  async function idsFile(episodes: { id: string }[]): Promise<string> {
    const path = join(scratch, 'ids.txt');
    await writeFile(path, episodes.map(({ id }) => id).join('\n'));
    return path;
  }
});
