// Latency of an arm against the reference on the same questions: mean, p50 and p95, as a difference and as a ratio.
import { bootstrapInterval, everyQuestion } from '../evaluation/bootstrap.js';
import type { Interval } from '../evaluation/statistics.js';

/** One question's values under both arms: its turns, or itself. */
export interface TimedPair {
  readonly reference: readonly number[];
  readonly arm: readonly number[];
}

export interface LatencyFigure {
  readonly referenceMs: number;
  readonly armMs: number;
  /** arm / reference - 1: -0.9 is nine tenths less; null where the reference took no time. */
  readonly change: number | null;
  readonly changeInterval: Interval | null;
  readonly differenceMs: number;
  readonly differenceInterval: Interval | null;
}

export interface LatencyComparison {
  /** Questions in which neither arm failed. */
  readonly questions: number;
  /** Values per arm: turns, or questions. */
  readonly n: { readonly reference: number; readonly arm: number };
  readonly mean: LatencyFigure | null;
  readonly p50: LatencyFigure | null;
  readonly p95: LatencyFigure | null;
}

type Weigh = (counts: Float64Array) => number;

/** Pools the values of the questions drawn. A question without a value on either side still counts as drawn. */
export function compareLatency(pairs: readonly TimedPair[], seed: number): LatencyComparison {
  const [reference, arm] = [poolOf(pairs.map((pair) => pair.reference)), poolOf(pairs.map((pair) => pair.arm))];
  const figure = (of: (pool: Pool) => Weigh): LatencyFigure | null => {
    if (reference.values.length === 0 || arm.values.length === 0) return null;
    return latencyFigure(of(reference), of(arm), pairs.length, seed);
  };
  return {
    questions: pairs.length,
    n: { reference: reference.values.length, arm: arm.values.length },
    mean: figure(weightedMean),
    p50: figure((pool) => weightedPercentile(pool, 0.5)),
    p95: figure((pool) => weightedPercentile(pool, 0.95)),
  };
}

function latencyFigure(reference: Weigh, arm: Weigh, questions: number, seed: number): LatencyFigure {
  const counts = new Float64Array(questions);
  const over = (combine: (reference: number, arm: number) => number) => {
    return ([draw]: readonly Int32Array[]): number => {
      counts.fill(0);
      for (const question of draw ?? []) counts[question] = (counts[question] ?? 0) + 1;
      return combine(reference(counts), arm(counts));
    };
  };
  const change = over((a, b) => b / a - 1);
  const difference = over((a, b) => b - a);
  const all = everyQuestion([questions]);
  const referenceMs = over((a) => a)(all);
  return {
    referenceMs,
    armMs: over((_, b) => b)(all),
    change: referenceMs === 0 ? null : change(all),
    changeInterval: bootstrapInterval([questions], change, { seed }),
    differenceMs: difference(all),
    differenceInterval: bootstrapInterval([questions], difference, { seed }),
  };
}

/** All values sorted upwards, each with the question that it belongs to. */
interface Pool {
  readonly values: Float64Array;
  readonly owners: Int32Array;
}

function poolOf(questions: readonly (readonly number[])[]): Pool {
  const entries = questions.flatMap((values, owner) => values.map((value) => ({ value, owner })));
  entries.sort((a, b) => a.value - b.value);
  return {
    values: Float64Array.from(entries, ({ value }) => value),
    owners: Int32Array.from(entries, ({ owner }) => owner),
  };
}

function weightedMean({ values, owners }: Pool): Weigh {
  return (counts) => {
    let [sum, weight] = [0, 0];
    for (let i = 0; i < values.length; i++) {
      const count = counts[owners[i] ?? 0] ?? 0;
      sum += count * (values[i] ?? 0);
      weight += count;
    }
    return sum / weight;
  };
}

/** The percentile (type 7) of the values as often as their question was drawn, without sorting again. */
function weightedPercentile({ values, owners }: Pool, share: number): Weigh {
  return (counts) => {
    let weight = 0;
    for (const owner of owners) weight += counts[owner] ?? 0;
    const position = share * (weight - 1);
    const [rank, part] = [Math.floor(position), position % 1];
    let [passed, below] = [0, Number.NaN];
    for (let i = 0; i < values.length; i++) {
      passed += counts[owners[i] ?? 0] ?? 0;
      if (Number.isNaN(below) && passed > rank) below = values[i] ?? 0;
      if (passed > Math.ceil(position)) return below + ((values[i] ?? 0) - below) * part;
    }
    return below;
  };
}
