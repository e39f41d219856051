// Tests on pairs: the same questions answered by two arms. Only the questions on which the arms differ say anything.
import type { Interval } from './statistics.js';

/** Pairs by verdict of the first and of the second arm. */
export interface PairCounts {
  readonly both: number;
  readonly onlyFirst: number;
  readonly onlySecond: number;
  readonly neither: number;
}

export function countPairs(pairs: readonly (readonly [boolean, boolean])[]): PairCounts {
  const count = (first: boolean, second: boolean): number => pairs.filter(([a, b]) => a === first && b === second).length;
  return { both: count(true, true), onlyFirst: count(true, false), onlySecond: count(false, true), neither: count(false, false) };
}

/**
 * The exact two-sided McNemar test (McNemar 1947, binomial): with d = b + c discordant pairs,
 *   p = min(1, 2 * sum_{k <= min(b, c)} C(d, k) / 2^d)
 * and 1 where no pair is discordant.
 */
export function mcNemarP({ onlyFirst, onlySecond }: Pick<PairCounts, 'onlyFirst' | 'onlySecond'>): number {
  const discordant = onlyFirst + onlySecond;
  if (discordant === 0) return 1;
  return Math.min(1, 2 * binomialCdf(Math.min(onlyFirst, onlySecond), discordant, 0.5));
}

/** P(X <= k) of a binomial, summed in logarithms so that large n neither overflows nor vanishes. */
export function binomialCdf(k: number, n: number, p: number): number {
  if (k >= n) return 1;
  let [logTerm, sum] = [n * Math.log1p(-p), 0];
  for (let i = 0; i <= k; i++) {
    sum += Math.exp(logTerm);
    logTerm += Math.log((n - i) / (i + 1)) + Math.log(p) - Math.log1p(-p);
  }
  return Math.min(1, sum);
}

/** Holm's step-down adjustment (Holm 1979), in the order given: p_(i) becomes max over j <= i of (m - j + 1) p_(j), at most 1. */
export function holm(pValues: readonly number[]): number[] {
  const order = pValues.map((_, i) => i).sort((a, b) => (pValues[a] ?? 0) - (pValues[b] ?? 0));
  const adjusted = new Array<number>(pValues.length).fill(1);
  let largest = 0;
  for (const [rank, i] of order.entries()) {
    largest = Math.max(largest, Math.min(1, (pValues.length - rank) * (pValues[i] ?? 0)));
    adjusted[i] = largest;
  }
  return adjusted;
}

/**
 * Where n pairs all agree a bootstrap has nothing to draw. The share of discordant pairs is then below 1 - (1 - level)^(1/n)
 * (Clopper and Pearson 1934), half the error on either side, and the difference of the rates lies within it.
 */
export function agreementBound(n: number, level = 0.95): number {
  return 1 - ((1 - level) / 2) ** (1 / n);
}

export type Verdict = 'yes' | 'no' | 'undecided';

/** Whether a difference (first minus second) is no worse than -margin: told from its interval, in the same unit. */
export function nonInferior({ low, high }: Interval, margin: number): Verdict {
  if (low > -margin) return 'yes';
  return high < -margin ? 'no' : 'undecided';
}
