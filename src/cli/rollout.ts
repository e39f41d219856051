// Minibatches of rollouts from settings: the parts that `ssr rollout` and `ssr train` share.
import { availableParallelism } from 'node:os';
import { performance } from 'node:perf_hooks';
import { UsageError } from '../errors.js';
import { createBreaker } from '../evaluation/breaker.js';
import type { Episode } from '../evaluation/records.js';
import type { RewardWeights } from '../training/rewards.js';
import { type RolledOut, rollOut } from '../training/rollout.js';
import { createStream, type DrawnQuestion, type StreamSource } from '../training/stream.js';
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

export interface StreamPart {
  readonly wiring: Pick<Wiring, 'benchmark'>;
  readonly weight: number;
  /** Share of each question type within the source, relative to one another; types that are not named are left out. */
  readonly types?: Readonly<Record<string, number>> | undefined;
}

/** Throws UsageError where a type is named that the source does not have, or a source has too few questions. */
export function streamOf(sources: readonly StreamPart[], questions: number, seed: number): (step: number) => DrawnQuestion[] {
  const parts = sources.flatMap((source, index) => partsOf(source).map((part) => ({ ...part, source: index })));
  const draw = createStream(parts, questions, seed);
  return (step) => draw(step).map(({ source, id }) => ({ source: parts[source]?.source ?? 0, id }));
}

function partsOf({ wiring: { benchmark }, weight, types }: StreamPart): StreamSource[] {
  const idsOf = (type?: string): string[] =>
    benchmark.entries.filter((entry) => type === undefined || entry.type === type).map(({ id }) => id);
  if (types === undefined) return [{ weight, ids: idsOf() }];
  const total = Object.values(types).reduce((sum, share) => sum + share, 0);
  return Object.entries(types).map(([type, share]) => {
    const ids = idsOf(type);
    if (ids.length > 0) return { weight: (weight * share) / total, ids };
    throw new UsageError('no questions of this type', {
      where: `sources: ${benchmark.name}`,
      expected: [...new Set(benchmark.entries.map((entry) => entry.type))].join(', '),
      found: type,
    });
  });
}
