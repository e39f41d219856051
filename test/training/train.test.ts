import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { train } from '../../src/cli/train.js';
import { readTrainConfig } from '../../src/cli/train-config.js';
import type { LoopEnd } from '../../src/training/loop.js';
import { TrainerProcess } from '../../src/training/trainer-process.js';

const base = {
  model: resolve('benchmarks/micro/model'),
  run: 'run',
  steps: 1,
  questions: 2,
  group: 2,
  sources: [{ benchmark: 'micro', split: 'dev' }],
  heldOut: { benchmark: 'micro', split: 'dev', limit: 3, every: 1 },
  harness: { workers: 1 },
  trainer: { command: ['node', resolve('test/training/fake-trainer.mjs')] },
};

async function configFile(changes: object = {}): Promise<{ path: string; run: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'ssr-train-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const path = join(folder, 'config.json');
  await writeFile(path, JSON.stringify({ ...base, ...changes }));
  return { path, run: join(folder, 'run') };
}

async function trained(
  path: string,
  overrides = {},
  environment = {},
  hear: (line: string) => void = () => undefined,
): Promise<{ end: LoopEnd; said: string[] }> {
  const said: string[] = [];
  const end = await train({
    config: await readTrainConfig(path, overrides),
    objective: 'gspo',
    environment: { PATH: process.env.PATH, ...environment },
    say: (line) => {
      said.push(line);
      hear(line);
    },
    signal: new AbortController().signal,
  });
  return { end, said };
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

describe('training by reinforcement', () => {
  it('conducts rollouts, steps and evaluations, and continues where it stopped', async () => {
    const { path, run } = await configFile();
    const first = await trained(path);
    expect(first.end).toEqual({ kind: 'finished' });
    expect(first.said[0]).toMatch(/^step 0 · held out 100\.0% \[43\.9, 100\.0\] of 3 · reward .* · ALARM: 3 scores differ/);
    expect(JSON.parse(await readFile(join(run, 'trainer.json'), 'utf8'))).toMatchObject({ objective: { objective: 'gspo' } });
    expect(JSON.parse(await readFile(join(run, 'best/success.json'), 'utf8'))).toMatchObject({ step: 0, successes: 3, n: 3 });
    const second = await trained(path, { steps: 2 });
    expect(second.said[0]).toBe('Continuing after step 1.');
    await expect(trained(path, { seed: 8 })).rejects.toThrow(/holds a run with another seed; expected 1, found 8/);
    const rows = (await readFile(join(run, 'curves.csv'), 'utf8')).trim().split('\n');
    expect(rows.map((row) => row.split(',').slice(0, 3).join(' '))).toEqual([
      'step held_out_success held_out_n',
      '0 1 3',
      '1 1 3',
      '2 1 3',
    ]);
    const evaluations = (await readFile(join(run, 'evaluations.jsonl'), 'utf8')).trim().split('\n');
    expect(evaluations).toHaveLength(3);
  }, 60_000);

  it('stops when the trainer diverges', async () => {
    const { path } = await configFile({ steps: 3 });
    process.env.FAKE_DIVERGE = '1';
    onTestFinished(() => void delete process.env.FAKE_DIVERGE);
    const { end, said } = await trained(path);
    expect(end).toEqual({ kind: 'diverged', reason: 'loss nan' });
    expect(said).toHaveLength(1);
  }, 60_000);

  it('leaves no trainer behind when anything else fails, so that the command can end', async () => {
    const { path, run } = await configFile();
    const full = () => {
      throw new Error('no space left on device');
    };
    await expect(trained(path, {}, {}, full)).rejects.toThrow(/no space left/);
    await expect(readFile(join(run, 'trainer/ended'))).resolves.toBeDefined();
  }, 60_000);

  it('leaves none behind that does not become ready', async () => {
    const { run } = await configFile();
    const pidFile = `${run}-pid`;
    const code = `require('fs').writeFileSync(${JSON.stringify(pidFile)}, String(process.pid)); console.log(1); setInterval(() => {}, 1000)`;
    await expect(TrainerProcess.launch({ command: 'node', arguments: ['-e', code], environment: {} })).rejects.toThrow(
      /the trainer/,
    );
    const pid = Number(await readFile(pidFile, 'utf8'));
    await expect.poll(() => isRunning(pid)).toBe(false);
  });

  it('says what is wrong with a configuration', async () => {
    const { path } = await configFile({ stepz: 3 });
    await expect(readTrainConfig(path, {})).rejects.toThrow(/config\.json: .*stepz/);
    const { path: nothing } = await configFile({ sources: [] });
    await expect(readTrainConfig(nothing, {})).rejects.toThrow(/sources/);
    const { path: scripted } = await configFile({ harness: { engine: 'scripted', script: 'none.json' } });
    await expect(trained(scripted)).rejects.toThrow(/the scripted engine has no weights to train/);
  });
});
