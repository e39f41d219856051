// Minibatches of rollouts from settings: the parts that `ssr rollout` and `ssr train` share.
import { availableParallelism } from 'node:os';
import { performance } from 'node:perf_hooks';
import { UsageError } from '../errors.js';
import { createBreaker } from '../evaluation/breaker.js';
import type { Episode } from '../evaluation/records.js';
import type { RewardWeights } from '../training/rewards.js';
import { type RolledOut, rollOut } from '../training/rollout.js';
import { createStream, type DrawnQuestion } from '../training/stream.js';
import type { Settings } from './options.js';
import type { Wiring } from './wire.js';

export interface RolloutRequest {
  readonly questions: readonly DrawnQuestion[];
  readonly step: number;
  readonly group: number;
  readonly rewards: RewardWeights;
  readonly onEpisode?: (episode: Episode) => void;
  readonly signal?: AbortSignal;
}

/** All sources share the first one's engine, library and sampling. */
export async function rollOutFrom(sources: readonly Wiring[], settings: Settings, request: RolloutRequest): Promise<RolledOut> {
  const [first] = sources;
  if (first === undefined) throw new UsageError('no training questions', { expected: 'at least one source' });
  const concurrency = settings.concurrency ?? 2 * availableParallelism();
  const { alpha, tau, seed } = settings;
  return rollOut({
    ...request,
    sources,
    seed,
    alpha,
    tau,
    reasoning: trainedReasoning(settings),
    library: { name: first.library.name, candidates: first.candidates },
    concurrency,
    breaker: createBreaker({ unavailableInARow: Math.max(3, concurrency), maxErrorRate: null }),
    clock: () => performance.now(),
  });
}

/** The trainer knows S as a length-normalised sum, and thoughts that the model wrote freely. Throws UsageError for others. */
export function trainedReasoning({ reasoning, scorer, fallback }: Settings): 'ssr' | 'freeform' {
  if (fallback === undefined && reasoning === 'freeform') return 'freeform';
  if (fallback === undefined && reasoning === 'selection' && scorer === 'length') return 'ssr';
  throw new UsageError('this way to reason cannot be trained', {
    expected: 'selection with the scorer length, or freeform, without a fallback',
    found: `${reasoning} with the scorer ${scorer}${fallback === undefined ? '' : `, falling back to ${fallback}`}`,
  });
}

export function streamOf(
  sources: readonly { readonly wiring: Pick<Wiring, 'benchmark'>; readonly weight: number }[],
  questions: number,
  seed: number,
): (step: number) => DrawnQuestion[] {
  return createStream(
    sources.map(({ wiring: { benchmark }, weight }) => ({ weight, ids: benchmark.entries.map(({ id }) => id) })),
    questions,
    seed,
  );
}
