import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type Rate, wilsonInterval } from '../../src/evaluation/statistics.js';
import { Journal } from '../../src/training/journal.js';
import { conduct, type LoopEnd, type LoopParts, type StepRecord } from '../../src/training/loop.js';
import { readMinibatch } from '../../src/training/minibatch.js';
import type { RolledOut } from '../../src/training/rollout.js';
import { type StepReply, TrainerProcess } from '../../src/training/trainer-process.js';
import type { Engine } from '../../src/types.js';

const golden = await readMinibatch('test/golden/rollouts/micro');
const rolledOut: RolledOut = { ...golden, images: [], episodes: [] };
const engine = {} as Engine;

function rate(successes: number, n = 10): Rate {
  return { successes, n, rate: successes / n, interval: wilsonInterval(successes, n) };
}

/** Held-out successes of ten per step; `diverge` is the step whose update is no number. */
function parts(successes: readonly number[], log: string[], diverge = -1, start = 0): LoopParts {
  let at = start;
  return {
    trainer: {
      start: { step: start, weights: `w${start}` },
      async step(): Promise<StepReply> {
        if (at === diverge) return { kind: 'diverged', reason: 'loss nan' };
        log.push(`step ${at++}`);
        return { kind: 'stepped', step: at, weights: `w${at}`, metrics: { loss: 0.5, gradient_norm: 1 }, seconds: { update: 1 } };
      },
    },
    handOver: {
      async serve({ weights }) {
        log.push(`serve ${weights}`);
        return engine;
      },
      close: async () => undefined,
    },
    rollOut: async (_, step) => {
      log.push(`rollout ${step}`);
      return rolledOut;
    },
    store: async () => 'folder',
    evaluate: async (_, step) => rate(successes[step] ?? 0),
    keepBest: async ({ weights }) => void log.push(`best ${weights}`),
    clock: () => 0,
  };
}

async function drive(loop: AsyncGenerator<StepRecord, LoopEnd>): Promise<{ records: StepRecord[]; end: LoopEnd }> {
  const records: StepRecord[] = [];
  for (;;) {
    const next = await loop.next();
    if (next.done) return { records, end: next.value };
    records.push(next.value);
  }
}

async function folder(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'ssr-train-'));
  onTestFinished(() => rm(path, { recursive: true, force: true }));
  return path;
}

describe('the loop', () => {
  it('rolls out with the weights of the step before, and ends with an evaluation', async () => {
    const log: string[] = [];
    const settings = { steps: 2, evaluateEvery: 1, collapse: 0.5 };
    const { records, end } = await drive(conduct(parts([2, 4, 3], log), settings));
    expect(log).toEqual(['serve w0', 'best w0', 'rollout 0', 'step 0', 'serve w1', 'best w1', 'rollout 1', 'step 1', 'serve w2']);
    expect(records.map(({ step, heldOut, rollout }) => [step, heldOut?.rate, rollout === null])).toEqual([
      [0, 0.2, false],
      [1, 0.4, false],
      [2, 0.3, true],
    ]);
    expect(end).toEqual({ kind: 'finished' });
  });

  it('evaluates every k steps and the last weights', async () => {
    const settings = { steps: 5, evaluateEvery: 2, collapse: 0 };
    const { records } = await drive(conduct(parts([1, 1, 1, 1, 1, 1], []), settings));
    expect(records.map(({ heldOut }) => heldOut !== null)).toEqual([true, false, true, false, true, true]);
  });

  it('stops when the loss is no number, with the weights of the step before', async () => {
    const log: string[] = [];
    const { records, end } = await drive(conduct(parts([2, 2, 2], log, 1), { steps: 5, evaluateEvery: 1, collapse: 0.5 }));
    expect(end).toEqual({ kind: 'diverged', reason: 'loss nan' });
    expect(records).toHaveLength(1);
  });

  it('stops when held-out success collapses', async () => {
    const { records, end } = await drive(conduct(parts([6, 8, 3], []), { steps: 5, evaluateEvery: 1, collapse: 0.5 }));
    expect(end).toEqual({ kind: 'diverged', reason: 'held-out success fell to 0.300, the best was 0.800' });
    expect(records.at(-1)).toMatchObject({ step: 2, rollout: null });
  });
});

describe('the journal', () => {
  const record = (step: number, heldOut: Rate | null = null): StepRecord => ({
    step,
    heldOut,
    rollout: {
      reward: 1,
      success: 0.5,
      masked: 0,
      turns: 3,
      actionTokens: 9,
      selectionEntropy: 0.1,
      selections: [0.25, 0.75],
      statuses: {},
    },
    metrics: { loss: -0.5, kl: 0.01 },
    secondsPerPhase: { rollout: 2, update: 1 },
  });

  it('writes curves that a resumed run continues without repeating a step', async () => {
    const path = await folder();
    const first = await Journal.open(path, ['a', 'b'], 0);
    await first.noteEvaluation(0, rate(2));
    for (const step of [0, 1, 2]) await first.note(record(step, step === 0 ? rate(2) : null));
    const second = await Journal.open(path, ['a', 'b'], 2);
    expect(second.evaluations).toEqual([{ step: 0, successes: 2, n: 10 }]);
    expect(second.best).toBe(0.2);
    await second.note(record(2));
    const [header = '', ...rows] = (await readFile(join(path, 'curves.csv'), 'utf8')).trim().split('\n');
    expect(rows.map((row) => Number(row.split(',')[0]))).toEqual([0, 1, 2]);
    const column = (name: string) => header.split(',').indexOf(name);
    expect(rows[0]?.split(',')[column('held_out_success')]).toBe('0.2');
    expect(rows[1]?.split(',')[column('held_out_success')]).toBe('');
    expect(rows[2]?.split(',')[column('selected/b')]).toBe('0.75');
    const svg = await readFile(join(path, 'curves.svg'), 'utf8');
    expect(svg.match(/<polyline/g)).toHaveLength(2);
  });

  it('keeps the best weights with their success', async () => {
    const path = await folder();
    await mkdir(join(path, 'weights'));
    await writeFile(join(path, 'weights/model.safetensors'), 'w7');
    const journal = await Journal.open(path, [], 0);
    await journal.keepBest({ step: 7, weights: join(path, 'weights') }, rate(9));
    expect(await readFile(join(path, 'best/model.safetensors'), 'utf8')).toBe('w7');
    expect(JSON.parse(await readFile(join(path, 'best/success.json'), 'utf8'))).toMatchObject({ step: 7, successes: 9, n: 10 });
  });
});

describe('the trainer as a process', () => {
  const launch = (source: string): Promise<TrainerProcess> =>
    TrainerProcess.launch({ command: 'node', arguments: ['-e', source], environment: {} });
  const ready = `console.log(JSON.stringify({ ready: true, step: 4, weights: '/w4' }));`;

  it('answers a minibatch with a step', async () => {
    const reply = `{ step: 5, weights: '/w5', metrics: { loss: 1 }, seconds: { update: 2 } }`;
    const trainer = await launch(`${ready} process.stdin.on('data', () => console.log(JSON.stringify(${reply})))`);
    expect(trainer.start).toEqual({ ready: true, step: 4, weights: '/w4' });
    expect(await trainer.step('/minibatch')).toMatchObject({ kind: 'stepped', step: 5, weights: '/w5', metrics: { loss: 1 } });
    await trainer.close();
  });

  it('says that it diverged, and what it wrote last when it dies', async () => {
    const diverging = await launch(
      `${ready} process.stdin.once('data', () => { console.log('{"diverged":"nan","step":4}'); process.exit(); })`,
    );
    expect(await diverging.step('/minibatch')).toEqual({ kind: 'diverged', reason: 'nan' });
    await diverging.close();
    const dying = await launch(`${ready} process.stdin.once('data', () => { console.error('out of memory'); process.exit(3); })`);
    await expect(dying.step('/minibatch')).rejects.toThrow(/the trainer ended; .* exit code 3: out of memory/);
    await expect(launch(`console.error('no such model'); process.exit(1)`)).rejects.toThrow(/exit code 1: no such model/);
  });
});
