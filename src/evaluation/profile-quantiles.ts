// How far a percentile may be off: intervals between order statistics, which hold for every continuous distribution.
import { binomialCdf } from './paired.js';
import { mean, percentile } from './statistics.js';

export const quantileIntervalMethod = 'distribution-free 95% intervals between order statistics (exact binomial)';

/** A percentile with bounds; a null bound says that n is too small to have one on that side. */
export interface Quantile {
  readonly value: number | null;
  readonly low: number | null;
  readonly high: number | null;
}

export interface Profile {
  readonly n: number;
  readonly mean: number | null;
  readonly p50: Quantile;
  readonly p90: Quantile;
  readonly p95: Quantile;
  readonly p99: Quantile;
}

/** Mean and percentiles of one and the same population. */
export function profileOf(values: readonly number[]): Profile {
  const sorted = Float64Array.from(values).sort();
  const at = (share: number): Quantile => ({ value: percentile(sorted, share), ...quantileBounds(sorted, share) });
  return { n: values.length, mean: mean(sorted), p50: at(0.5), p90: at(0.9), p95: at(0.95), p99: at(0.99) };
}

/**
 * With B ~ Binomial(n, share) the value below x_(l) has probability P(B <= l - 1): the lower bound is the largest x_(l) with
 * P(B <= l - 1) <= (1 - level) / 2, the upper the smallest x_(u) with P(B <= u - 1) >= (1 + level) / 2.
 */
export function quantileBounds(
  sorted: ArrayLike<number>,
  share: number,
  level = 0.95,
): { readonly low: number | null; readonly high: number | null } {
  const [n, tail] = [sorted.length, (1 - level) / 2];
  let [low, high] = [0, n + 1];
  while (low < n && binomialCdf(low, n, share) <= tail) low++;
  while (high > 1 && binomialCdf(high - 2, n, share) >= 1 - tail) high--;
  return { low: sorted[low - 1] ?? null, high: high > n ? null : (sorted[high - 1] ?? null) };
}
