// Rollouts from the harness itself: every question n times with the current weights at tau > 0, by the code that evaluation runs.
import { EngineError, type SsrError, UsageError } from '../errors.js';
import type { EpisodeDependencies, EpisodeOutcome } from '../evaluation/episode.js';
import type { Episode } from '../evaluation/records.js';
import { runQuestions } from '../evaluation/run.js';
import { deriveSeed } from '../random.js';
import type { Benchmark, Candidate, Image } from '../types.js';
import type { Minibatch, MinibatchHeader, Trajectory } from './minibatch.js';
import { groupRewards, type RewardWeights } from './rewards.js';
import type { DrawnQuestion } from './stream.js';
import { toTrajectory } from './trajectory.js';

/** A training set wired to its tools. All sources of a minibatch share one engine. */
export type RolloutSource = Pick<EpisodeDependencies, 'agent' | 'benchmark' | 'judge'>;

export interface RolloutOptions {
  readonly sources: readonly RolloutSource[];
  readonly questions: readonly DrawnQuestion[];
  readonly step: number;
  readonly seed: number;
  readonly group: number;
  readonly alpha: number;
  readonly tau: number;
  readonly reasoning: MinibatchHeader['reasoning'];
  readonly rewards: RewardWeights;
  readonly library: { readonly name: string; readonly candidates: readonly Candidate[] };
  readonly concurrency: number;
  readonly breaker: (episode: Episode) => SsrError | null;
  readonly clock: () => number;
  readonly onEpisode?: (episode: Episode) => void;
  readonly signal?: AbortSignal;
}

export interface RolledOut extends Minibatch {
  readonly images: readonly Image[];
  readonly episodes: readonly Episode[];
}

/** Draws one minibatch. Throws UsageError for sampling that cannot be learnt from, EngineError when the weights changed meanwhile. */
export async function rollOut(options: RolloutOptions): Promise<RolledOut> {
  const { sources, group } = options;
  for (const { agent } of sources) refuseBiasedSampling(agent.sampling, options.tau);
  const outcomes: EpisodeOutcome[] = [];
  for (const [index, source] of sources.entries()) {
    const ids = options.questions.filter((question) => question.source === index).map(({ id }) => id);
    if (ids.length > 0) outcomes.push(...(await runSource(source, ids, options)));
  }
  const first = sources[0] as RolloutSource;
  const after = await first.agent.engine.describe();
  if (after.weights !== first.agent.info.weights) {
    throw new EngineError('the weights changed during a rollout', { expected: first.agent.info.weights, found: after.weights });
  }
  const trajectories = toTrajectories(outcomes, options, after.weights);
  const images = new Map(outcomes.flatMap((outcome) => outcome.images.map((image) => [image.sha256, image])));
  return {
    header: header(options, after.weights),
    trajectories,
    images: [...images.values()],
    episodes: outcomes.map(({ episode }) => episode),
  };

  function header({ step, seed, alpha, tau, reasoning, rewards, library }: RolloutOptions, weights: string): MinibatchHeader {
    const { agent } = first;
    return {
      kind: 'header',
      schema: 1,
      step,
      seed,
      sources: sources.map(({ benchmark: { name, split, sha256 } }) => ({ name, split, sha256 })),
      group,
      reasoning,
      alpha,
      tau,
      temperature: agent.sampling.temperature,
      rewards: { ...rewards },
      engine: agent.info.engine,
      weights,
      tokenizer: agent.tokenizer.sha256,
      imagePadId: agent.tokenizer.idOf('<|image_pad|>'),
      library: { name: library.name, candidates: library.candidates.map(({ id, ids }) => ({ id, ids: [...ids] })) },
    };
  }
}

/** The logged log-probs must be those of the distribution that actions were drawn from. */
function refuseBiasedSampling(sampling: { temperature: number; topP: number; topK: number }, tau: number): void {
  const { temperature, topP, topK } = sampling;
  if (temperature > 0 && topP === 1 && topK === 0 && tau > 0) return;
  throw new UsageError('rollouts need whole distributions', {
    expected: 'temperature and tau above 0, top-p 1, top-k 0',
    found: `temperature ${temperature}, tau ${tau}, top-p ${topP}, top-k ${topK}`,
  });
}

async function runSource(source: RolloutSource, ids: readonly string[], options: RolloutOptions): Promise<EpisodeOutcome[]> {
  const { group, concurrency, breaker, clock, signal, onEpisode } = options;
  const prefix = options.sources.length > 1 ? `${source.benchmark.name}/` : '';
  const benchmark = repeated(source.benchmark, ids, group, prefix);
  const outcomes = new Map<string, EpisodeOutcome>();
  const seed = deriveSeed(options.seed, 'rollout', String(options.step), source.benchmark.name);
  for await (const outcome of runQuestions({
    ...source,
    benchmark,
    entries: benchmark.entries,
    seed,
    concurrency,
    breaker,
    clock,
    ...(signal && { signal }),
  })) {
    outcomes.set(outcome.episode.id, outcome);
    onEpisode?.(outcome.episode);
  }
  // In the order of the plan, so that equal seeds give equal files whatever the concurrency.
  return benchmark.entries.flatMap(({ id }) => outcomes.get(id) ?? []);
}

/**
 * Every question `group` times; the trajectories `ID#0`, `ID#1`, … have seeds and caches of their own. The prefix keeps
 * equal ids of two sources apart.
 */
function repeated(benchmark: Benchmark, ids: readonly string[], group: number, prefix: string): Benchmark {
  const types = new Map(benchmark.entries.map(({ id, type }) => [id, type]));
  const entries = ids.flatMap((id) =>
    Array.from({ length: group }, (_, k) => ({ id: `${prefix}${id}#${k}`, type: types.get(id) ?? '' })),
  );
  return { ...benchmark, entries, load: (id) => benchmark.load(questionOf(id).slice(prefix.length)) };
}

function questionOf(id: string): string {
  return id.slice(0, id.lastIndexOf('#'));
}

function toTrajectories(outcomes: readonly EpisodeOutcome[], options: RolloutOptions, weights: string): Trajectory[] {
  const groups = new Map<string, Episode[]>();
  for (const { episode } of outcomes) {
    const members = groups.get(questionOf(episode.id)) ?? [];
    members.push(episode);
    groups.set(questionOf(episode.id), members);
  }
  const { alpha, tau, library } = options;
  return [...groups].flatMap(([question, episodes]) => {
    const rewards = groupRewards(episodes, options.rewards);
    return episodes.map((episode, i) =>
      toTrajectory(episode, {
        question,
        weights,
        candidates: library.candidates,
        alpha,
        tau,
        reward: rewards[i] as Trajectory['reward'],
      }),
    );
  });
}
