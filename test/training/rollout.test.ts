import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { logSoftmax } from '../../src/agent/scoring.js';
import { JudgeError } from '../../src/errors.js';
import { exactJudge } from '../../src/judges/exact.js';
import { type Minibatch, readMinibatch, writeMinibatch } from '../../src/training/minibatch.js';
import { rolloutFigures } from '../../src/training/progress.js';
import { DEFAULT_REWARDS } from '../../src/training/rewards.js';
import { type RolledOut, type RolloutOptions, rollOut } from '../../src/training/rollout.js';
import { toTrajectory } from '../../src/training/trajectory.js';
import type { Judge } from '../../src/types.js';
import { answer, call, plainImage, testAgent, testBenchmark } from '../support/agent.js';

const GOLDEN = 'test/golden/rollouts/micro';
const tools = { textSearch: { name: 'memory', search: async () => [{ text: 'Oslo' }] } };
/** By trajectory: searches and answers, or answers wrongly at once. */
const script = {
  '*': [
    { candidate: 4, action: call('text_search_tool', { query: 'x' }) },
    { candidate: 5, action: answer('Oslo') },
  ],
  'q1#0': [{ candidate: 0, action: answer('Rome') }],
  'q1#1': [{ candidate: 0, action: 'no tags' }],
};

async function options(changes: Partial<RolloutOptions> = {}, judge: Judge = exactJudge()): Promise<RolloutOptions> {
  const agent = await testAgent({ script, tools, tau: 1 });
  const sampling = { ...agent.sampling, temperature: 1 };
  return {
    sources: [{ agent: { ...agent, sampling }, benchmark: await testBenchmark(3), judge }],
    questions: [
      { source: 0, id: 'q1' },
      { source: 0, id: 'q2' },
    ],
    step: 3,
    seed: 9,
    group: 3,
    alpha: 1,
    tau: 1,
    reasoning: 'ssr',
    rewards: DEFAULT_REWARDS,
    library: { name: 'test', candidates: await candidatesOf() },
    concurrency: 4,
    breaker: () => null,
    clock: () => 0,
    ...changes,
  };
}

async function candidatesOf() {
  const { loadLibrary, tokeniseLibrary } = await import('../../src/agent/library.js');
  const { dialect, tokenizer } = await testAgent({ script });
  return tokeniseLibrary(await loadLibrary('configs/libraries/default.json'), dialect, tokenizer);
}

async function folder(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'ssr-minibatch-'));
  onTestFinished(() => rm(path, { recursive: true, force: true }));
  return join(path, 'minibatch');
}

describe('a rollout', () => {
  it('asks every question as often as a group is large, in the order of the plan', async () => {
    const { header, trajectories } = await rollOut(await options());
    expect(trajectories.map(({ id }) => id)).toEqual(['q1#0', 'q1#1', 'q1#2', 'q2#0', 'q2#1', 'q2#2']);
    expect(new Set(trajectories.map(({ seed }) => seed)).size).toBe(6);
    expect(header).toMatchObject({
      step: 3,
      group: 3,
      tau: 1,
      temperature: 1,
      rewards: { outcome: 1, format: 0.5, efficiency: 0 },
    });
  });

  it('rewards right answers and well-formed trajectories, scores unsuccessful ones too', async () => {
    const { trajectories } = await rollOut(await options());
    const bySelection = trajectories.slice(0, 3).map(({ status, reward }) => [status, reward.total]);
    expect(bySelection).toEqual([
      ['answer', 0.5],
      ['invalid-output', 0],
      ['answer', 1.5],
    ]);
  });

  it('keeps spans that hold the ids of the chosen candidate, and log q that follows from the scores', async () => {
    const run = await options();
    const { header, trajectories } = await rollOut(run);
    for (const { ids, turns } of trajectories) {
      for (const { history, reasoning, selection, action, actionLogprobs } of turns) {
        expect(ids.slice(history, history + reasoning)).toEqual(header.library.candidates[selection?.index ?? -1]?.ids);
        expect(actionLogprobs).toHaveLength(action);
        expect(selection?.logProbability).toBe(logSoftmax(selection?.scores ?? [], 1)[selection?.index ?? -1]);
      }
    }
  });

  it('masks what the judge could not decide, and counts it', async () => {
    const judge: Judge = {
      name: 'broken',
      judge: async (_, text) => {
        if (text === 'Rome') throw new JudgeError('no verdict');
        return { correct: true, judge: 'broken' };
      },
    };
    const rolledOut = await rollOut(await options({}, judge));
    expect(rolledOut.trajectories[0]).toMatchObject({
      masked: 'judge-error',
      correct: null,
      reward: { outcome: null, total: null },
    });
    expect(rolloutFigures(rolledOut)).toMatchObject({ masked: 1, success: 4 / 5 });
  });

  it('keeps equal ids of two sources apart', async () => {
    const run = await options();
    const [source] = run.sources;
    if (source === undefined) throw new Error('a source');
    const sources = [source, { ...source, benchmark: { ...source.benchmark, name: 'other' } }];
    const questions = [
      { source: 0, id: 'q2' },
      { source: 1, id: 'q2' },
    ];
    const { trajectories } = await rollOut({ ...run, sources, questions });
    expect([...new Set(trajectories.map(({ question }) => question))]).toEqual(['test/q2', 'other/q2']);
    expect(trajectories.every(({ correct }) => correct)).toBe(true);
  });

  it('refuses to sample from another distribution than it logs', async () => {
    const run = await options();
    const [source] = run.sources;
    if (source === undefined) throw new Error('a source');
    const nucleus = { ...source.agent, sampling: { ...source.agent.sampling, topP: 0.9 } };
    await expect(rollOut({ ...run, sources: [{ ...source, agent: nucleus }] })).rejects.toThrow(
      /top-p 1, top-k 0, found .*top-p 0.9/,
    );
    await expect(rollOut({ ...run, tau: 0 })).rejects.toThrow(/tau above 0/);
  });

  it('refuses weights that changed on the way', async () => {
    const run = await options();
    const [source] = run.sources;
    if (source === undefined) throw new Error('a source');
    const agent = { ...source.agent, info: { ...source.agent.info, weights: 'before' } };
    await expect(rollOut({ ...run, sources: [{ ...source, agent }] })).rejects.toThrow(/weights changed during a rollout/);
  });

  it('rewards short right answers within their group when asked', async () => {
    const rewards = { outcome: 1, format: 0, efficiency: 0.2 };
    const long = { '*': [{ candidate: 5, action: answer('Oslo') }], 'q2#1': script['*'] };
    const agent = await testAgent({ script: long, tools, tau: 1 });
    const run = await options({ rewards });
    const sources = [
      { ...run.sources[0], agent: { ...agent, sampling: { ...agent.sampling, temperature: 1 } } },
    ] as RolloutOptions['sources'];
    const { trajectories } = await rollOut({ ...run, sources });
    expect(trajectories.slice(3).map(({ reward }) => reward.total)).toEqual([1.2, 1, 1.2]);
  });
});

describe('a trajectory', () => {
  it('is refused where its record contradicts itself', async () => {
    const run = await options();
    const { episodes, header } = await rollOut(run);
    const facts = { question: 'q2', weights: header.weights, candidates: run.library.candidates, alpha: 1, tau: 1 };
    const reward = { outcome: 1, format: 0.5, efficiency: 0, total: 1.5 };
    const whole = structuredClone(episodes[4]);
    if (whole === undefined) throw new Error('an episode');
    expect(toTrajectory(whole, { ...facts, reward }).turns).toHaveLength(2);
    const [first] = whole.turns;
    if (first?.reasoning.selection == null) throw new Error('a selection');
    const swapped = structuredClone(whole);
    swapped.ids[first.history.length + 2] = 7;
    expect(() => toTrajectory(swapped, { ...facts, reward })).toThrow(/expected the ids of candidate r_LOOKUP_FACT/);
    const otherScores = structuredClone(whole);
    const { selection } = otherScores.turns[0]?.reasoning ?? {};
    if (selection) selection.scores[0] = (selection.scores[0] ?? 0) + 0.1;
    expect(() => toTrajectory(otherScores, { ...facts, reward })).toThrow(/scores that follow from the token log-probs/);
    const gap = structuredClone(whole);
    gap.ids.push(5);
    expect(() => toTrajectory(gap, { ...facts, reward })).toThrow(/ids in all/);
  });
});

describe('a minibatch on disk', () => {
  it('reads as it was written, pictures beside it', async () => {
    const path = await folder();
    const rolledOut: RolledOut = await rollOut(await options());
    await writeMinibatch(path, rolledOut, rolledOut.images);
    const { header, trajectories } = await readMinibatch(path);
    expect({ header, trajectories }).toEqual(
      JSON.parse(JSON.stringify({ header: rolledOut.header, trajectories: rolledOut.trajectories })),
    );
    const image = await plainImage('red');
    expect(trajectories[0]?.images[0]?.file).toBe(`images/${image.sha256}.png`);
    expect(await readFile(join(path, `images/${image.sha256}.png`))).toEqual(Buffer.from(image.bytes));
  });

  it('is refused with mixed weight versions', async () => {
    const path = await folder();
    const rolledOut = await rollOut(await options());
    const mixed: Minibatch = {
      header: rolledOut.header,
      trajectories: rolledOut.trajectories.map((trajectory, i) => (i === 2 ? { ...trajectory, weights: 'step-8' } : trajectory)),
    };
    await writeMinibatch(path, mixed, []);
    await expect(readMinibatch(path)).rejects.toThrow(/q1#2: mixed weight versions; expected .*, found step-8/);
    await writeFile(join(path, 'rollouts.jsonl'), '{"kind":"header"}\n');
    await expect(readMinibatch(path)).rejects.toThrow(/rollouts.jsonl:1: field schema/);
  });

  it('is the golden one, which the trainer reads too', async () => {
    const minibatch = await readMinibatch(GOLDEN);
    const expected = JSON.parse(await readFile(join(GOLDEN, 'expected.json'), 'utf8')) as { rewards: number[]; turns: number };
    expect(minibatch.trajectories.map(({ reward }) => reward.total)).toEqual(expected.rewards);
    expect(rolloutFigures(minibatch)).toMatchObject({ turns: expected.turns, masked: 0 });
    for (const { turns } of minibatch.trajectories) {
      for (const { selection } of turns) {
        const logProbability = logSoftmax(selection?.scores ?? [], minibatch.header.tau)[selection?.index ?? -1];
        expect(selection?.logProbability).toBeCloseTo(logProbability ?? Number.NaN, 9);
      }
    }
  });
});
