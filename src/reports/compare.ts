// An arm against the reference on the same questions: success with McNemar's test and a bootstrap interval, latency likewise,
// Holm's correction over benchmarks, and the verdict. Differences are always arm minus reference.
import { bootstrapInterval, bootstrapMethod, everyQuestion } from '../evaluation/bootstrap.js';
import { agreementBound, countPairs, holm, mcNemarP, nonInferior, type PairCounts, type Verdict } from '../evaluation/paired.js';
import { type Interval, type Rate, rate } from '../evaluation/statistics.js';
import { deriveSeed } from '../random.js';
import { type Condition, type Difference, requireAlike, warmArms } from './compare-alike.js';
import { compareLatency, type LatencyComparison, type TimedPair } from './compare-latency.js';
import type { Arm, ArmRun, Outcome } from './compare-outcome.js';
import { type ArmSummary, summariseArm } from './compare-summary.js';

export interface CompareOptions {
  /** Success an arm may lose and still be called no worse, as a share (0.02 is two points). */
  readonly margin: number;
  readonly seed: number;
  /** Conditions that may differ. */
  readonly allowed: readonly Condition[];
}

export interface SuccessComparison {
  /** Questions with a verdict under both arms. */
  readonly n: number;
  /** Questions left out since one of the arms has no verdict on them. */
  readonly withoutPair: number;
  readonly pairs: PairCounts;
  readonly reference: Rate;
  readonly arm: Rate;
  readonly difference: number | null;
  readonly interval: Interval | null;
  readonly intervalMethod: string;
  readonly p: number | null;
  /** Holm's, over the benchmarks of this comparison. */
  readonly pHolm: number | null;
  readonly verdict: Verdict | null;
}

export interface BenchmarkComparison {
  readonly benchmark: string;
  readonly success: SuccessComparison;
  /** Ids that only the reference, or only the arm, answered right. */
  readonly discordant: { readonly onlyReference: readonly string[]; readonly onlyArm: readonly string[] };
  /** Per turn. */
  readonly reasoning: LatencyComparison;
  /** Per question. */
  readonly model: LatencyComparison;
}

export interface ArmComparison {
  readonly reference: string;
  readonly arm: string;
  readonly differences: readonly Difference[];
  readonly benchmarks: readonly BenchmarkComparison[];
  /** Mean over benchmarks, every benchmark weighing the same; null for one benchmark alone. */
  readonly macro: {
    readonly difference: number | null;
    readonly interval: Interval | null;
    readonly verdict: Verdict | null;
  } | null;
}

export interface Comparison {
  readonly schema: 1;
  readonly margin: number;
  readonly intervals: string;
  readonly arms: readonly ArmSummary[];
  /** Every other arm against the first. */
  readonly comparisons: readonly ArmComparison[];
  /** Arms with questions that began on a warm cache. */
  readonly warm: ReturnType<typeof warmArms>;
}

const UNIFORM = 'all pairs are alike: Clopper-Pearson bound on the share that would not be';

/** Throws UsageError for arms that are not alike, naming what differs. */
export function compareArms(arms: readonly Arm[], options: CompareOptions): Comparison {
  const [reference, ...others] = arms;
  if (reference === undefined) throw new RangeError('expected at least one arm');
  return {
    schema: 1,
    margin: options.margin,
    intervals: bootstrapMethod,
    arms: arms.map(summariseArm),
    comparisons: others.map((arm) => compareWith(reference, arm, options)),
    warm: warmArms(arms),
  };
}

function compareWith(reference: Arm, arm: Arm, options: CompareOptions): ArmComparison {
  const differences = requireAlike(reference, arm, options.allowed);
  const paired = reference.runs.map((run) => {
    const other = arm.runs.find(({ benchmark }) => benchmark === run.benchmark) as ArmRun;
    return { benchmark: run.benchmark, pairs: pairsOf(run, other) };
  });
  const benchmarks = paired.map(({ benchmark, pairs }) => compareBenchmark(benchmark, pairs, options));
  const adjusted = holm(benchmarks.map(({ success }) => success.p ?? 1));
  return {
    reference: reference.name,
    arm: arm.name,
    differences,
    benchmarks: benchmarks.map((comparison, i) => ({
      ...comparison,
      success: { ...comparison.success, pHolm: comparison.success.p === null ? null : (adjusted[i] ?? null) },
    })),
    macro:
      benchmarks.length === 1
        ? null
        : macroOf(
            paired.map(({ pairs }) => verdictPairs(pairs)),
            options,
          ),
  };
}

type Pair = readonly [Outcome, Outcome];

/** Questions that both arms have, in the reference's order. */
function pairsOf(reference: ArmRun, arm: ArmRun): Pair[] {
  return [...reference.outcomes.values()].flatMap((outcome) => {
    const other = arm.outcomes.get(outcome.id);
    return other ? [[outcome, other] as const] : [];
  });
}

function compareBenchmark(benchmark: string, pairs: readonly Pair[], options: CompareOptions): BenchmarkComparison {
  const seed = deriveSeed(options.seed, benchmark);
  const timed = pairs.filter(([a, b]) => !a.failed && !b.failed);
  const latency = (of: (outcome: Outcome) => readonly number[]): LatencyComparison =>
    compareLatency(
      timed.map(([a, b]): TimedPair => ({ reference: of(a), arm: of(b) })),
      seed,
    );
  const ids = (first: boolean): string[] =>
    pairs.filter(([a, b]) => a.correct === first && b.correct === !first).map(([{ id }]) => id);
  return {
    benchmark,
    success: compareSuccess(pairs, seed, options),
    discordant: { onlyReference: ids(true), onlyArm: ids(false) },
    reasoning: latency(({ reasoningMs }) => reasoningMs),
    model: latency(({ modelMs }) => [modelMs]),
  };
}

function verdictPairs(pairs: readonly Pair[]): (readonly [boolean, boolean])[] {
  return pairs.flatMap(([a, b]) => (a.correct === null || b.correct === null ? [] : [[a.correct, b.correct] as const]));
}

function compareSuccess(all: readonly Pair[], seed: number, { margin }: CompareOptions): SuccessComparison {
  const pairs = verdictPairs(all);
  const [n, counts] = [pairs.length, countPairs(pairs)];
  const differences = pairs.map(([a, b]) => Number(b) - Number(a));
  const uniform = n > 0 && differences.every((difference) => difference === differences[0]);
  const interval = uniform
    ? uniformInterval(differences[0] ?? 0, n)
    : bootstrapInterval([n], ([draw]) => meanOver(differences, draw), { seed });
  return {
    n,
    withoutPair: all.length - n,
    pairs: counts,
    reference: rate(counts.both + counts.onlyFirst, n),
    arm: rate(counts.both + counts.onlySecond, n),
    difference: n === 0 ? null : (counts.onlySecond - counts.onlyFirst) / n,
    interval,
    intervalMethod: uniform ? UNIFORM : bootstrapMethod,
    p: n === 0 ? null : mcNemarP(counts),
    pHolm: null,
    verdict: interval && nonInferior(interval, margin),
  };
}

/** Where every pair has the same difference: a pair that had another would move it by 1, from -1 or 1 by up to 2. */
function uniformInterval(difference: number, n: number): Interval {
  const reach = (difference === 0 ? 1 : 2) * agreementBound(n);
  return { low: Math.max(-1, difference - reach), high: Math.min(1, difference + reach) };
}

function macroOf(benchmarks: readonly (readonly (readonly [boolean, boolean])[])[], { margin, seed }: CompareOptions) {
  const differences = benchmarks.map((pairs) => pairs.map(([a, b]) => Number(b) - Number(a)));
  const sizes = differences.map(({ length }) => length);
  const macro = (draws: readonly Int32Array[]): number =>
    draws.reduce((sum, draw, i) => sum + meanOver(differences[i] ?? [], draw), 0) / draws.length;
  const interval = bootstrapInterval(sizes, macro, { seed });
  return {
    difference: sizes.includes(0) ? null : macro(everyQuestion(sizes)),
    interval,
    verdict: interval && nonInferior(interval, margin),
  };
}

function meanOver(values: readonly number[], draw: Int32Array | undefined): number {
  let sum = 0;
  for (const i of draw ?? []) sum += values[i] ?? 0;
  return sum / (draw?.length ?? 0);
}
