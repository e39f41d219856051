// Pure statistics of a report. Every figure stands with its n; a figure that no data supports is null, never 0.

/** How `percentile` interpolates; printed wherever a percentile is. */
export const percentileMethod = 'linear interpolation between order statistics (Hyndman-Fan type 7)';

/** The standard normal quantile of a two-sided 95% interval. */
const z95 = 1.959963984540054;

export interface Interval {
  readonly low: number;
  readonly high: number;
}

export interface Rate {
  readonly successes: number;
  readonly n: number;
  readonly rate: number | null;
  /** Wilson's 95% interval. */
  readonly interval: Interval | null;
}

export interface Distribution {
  readonly n: number;
  readonly mean: number | null;
  readonly p50: number | null;
  readonly p95: number | null;
}

/**
 * Wilson's score interval of a rate p = successes / n (Wilson 1927), by default at 95%:
 *   (p + z^2 / 2n -+ z sqrt(p (1 - p) / n + z^2 / 4n^2)) / (1 + z^2 / n)
 * Throws RangeError when the counts are not those of a rate, or when there is no data.
 */
export function wilsonInterval(successes: number, n: number, z: number = z95): Interval {
  if (!Number.isInteger(successes) || !Number.isInteger(n) || successes < 0 || successes > n || n === 0) {
    throw new RangeError(`expected whole counts with 0 <= successes <= n and n >= 1, found ${successes} of ${n}`);
  }
  const p = successes / n;
  const centre = p + z ** 2 / (2 * n);
  const spread = z * Math.sqrt((p * (1 - p)) / n + z ** 2 / (4 * n ** 2));
  const scale = 1 + z ** 2 / n;
  return {
    // Exact at the ends, where rounding would leave 1e-17 or 0.9999999.
    low: successes === 0 ? 0 : (centre - spread) / scale,
    high: successes === n ? 1 : (centre + spread) / scale,
  };
}

/** A rate with its n and Wilson's 95% interval; without data it has neither value nor interval. */
export function rate(successes: number, n: number): Rate {
  if (n === 0) return { successes, n, rate: null, interval: null };
  return { successes, n, rate: successes / n, interval: wilsonInterval(successes, n) };
}

/** Arithmetic mean; null without data. */
export function mean(values: readonly number[] | Float64Array): number | null {
  if (values.length === 0) return null;
  let sum = 0;
  for (const value of values) sum += value;
  return sum / values.length;
}

/**
 * The `share` quantile (0..1) of values sorted upwards, at position share * (n - 1) between the order statistics: type 7 of
 * Hyndman and Fan (1996), the default of NumPy and R. Null without data.
 */
export function percentile(sorted: ArrayLike<number>, share: number): number | null {
  if (!(share >= 0 && share <= 1)) throw new RangeError(`expected a share in 0..1, found ${share}`);
  if (sorted.length === 0) return null;
  const position = share * (sorted.length - 1);
  const below = sorted[Math.floor(position)] ?? 0;
  const above = sorted[Math.ceil(position)] ?? 0;
  return below + (above - below) * (position % 1);
}

/** Mean and percentiles of one and the same population; the order of the values does not matter, not even to rounding. */
export function describeDistribution(values: readonly number[]): Distribution {
  const sorted = Float64Array.from(values).sort();
  return { n: values.length, mean: mean(sorted), p50: percentile(sorted, 0.5), p95: percentile(sorted, 0.95) };
}
