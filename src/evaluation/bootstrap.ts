// The percentile bootstrap over questions (Efron 1979): whole questions are drawn again, with everything that was measured on them,
// so that pairs stay pairs and turns of one question stay together. Benchmarks are strata: each is drawn from by itself.
import { createRandom } from '../random.js';
import { type Interval, percentile } from './statistics.js';

export interface BootstrapOptions {
  readonly seed: number;
  readonly resamples?: number;
  /** Probability that the interval is made for. */
  readonly level?: number;
}

export const DEFAULT_RESAMPLES = 2000;

/** How the intervals are made; printed wherever one is. */
export const bootstrapMethod = `paired percentile bootstrap over questions, ${DEFAULT_RESAMPLES} resamples`;

/** From the questions drawn in each stratum, by place, to a figure; NaN where it does not exist. */
export type Statistic = (draws: readonly Int32Array[]) => number;

/**
 * The interval of a statistic over strata of so many questions each; null without questions or where some resample has no
 * figure. The draws' arrays are filled anew for each resample and must not be kept.
 */
export function bootstrapInterval(strata: readonly number[], statistic: Statistic, options: BootstrapOptions): Interval | null {
  const { seed, resamples = DEFAULT_RESAMPLES, level = 0.95 } = options;
  if (strata.length === 0 || strata.some((size) => size === 0)) return null;
  const random = createRandom(seed);
  const draws = strata.map((size) => new Int32Array(size));
  const values = new Float64Array(resamples);
  for (let resample = 0; resample < resamples; resample++) {
    for (const draw of draws) {
      for (let i = 0; i < draw.length; i++) draw[i] = Math.floor(random() * draw.length);
    }
    const value = statistic(draws);
    if (!Number.isFinite(value)) return null;
    values[resample] = value;
  }
  values.sort();
  const tail = (1 - level) / 2;
  return { low: percentile(values, tail) as number, high: percentile(values, 1 - tail) as number };
}

/** All questions once: the draw that gives the figure itself. */
export function everyQuestion(strata: readonly number[]): Int32Array[] {
  return strata.map((size) => Int32Array.from({ length: size }, (_, i) => i));
}
