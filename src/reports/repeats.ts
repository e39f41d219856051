// The same questions asked several times: mean, pass@k, and how much single questions vary.
//   pass@k = mean over questions of 1 - C(K - c, k) / C(K, k), c of K tries right (Chen et al. 2021, unbiased)
import { type Interval, mean } from '../evaluation/statistics.js';

export interface Repeats {
  readonly tries: number;
  /** Questions with a verdict in at least one try, and in all of them. */
  readonly questions: number;
  readonly complete: number;
  /** Over questions: the share of tries that were right. */
  readonly mean: number | null;
  /** Standard deviation of that share over questions, divided by the root of their number: tries of one question are no new questions. */
  readonly standardError: number | null;
  readonly interval: Interval | null;
  /** For k = 1 … tries, over the complete questions. */
  readonly passAtK: readonly (number | null)[];
  /** How many complete questions were right c times, for c = 0 … tries. */
  readonly rightTimes: readonly number[];
}

const z95 = 1.959963984540054;

/** Verdicts by question id, one map per try; null for a try without a verdict. */
export function repeatsOf(tries: readonly ReadonlyMap<string, boolean | null>[]): Repeats {
  const ids = [...new Set(tries.flatMap((verdicts) => [...verdicts.keys()]))];
  const shares: number[] = [];
  const rightTimes = Array.from({ length: tries.length + 1 }, () => 0);
  for (const id of ids) {
    const decided = tries.map((verdicts) => verdicts.get(id)).filter((verdict) => typeof verdict === 'boolean');
    const right = decided.filter(Boolean).length;
    if (decided.length > 0) shares.push(right / decided.length);
    if (decided.length === tries.length) rightTimes[right] = (rightTimes[right] ?? 0) + 1;
  }
  const average = mean(shares);
  const error = standardErrorOf(shares, average);
  return {
    tries: tries.length,
    questions: shares.length,
    complete: rightTimes.reduce((sum, count) => sum + count, 0),
    mean: average,
    standardError: error,
    interval:
      average === null || error === null
        ? null
        : { low: Math.max(0, average - z95 * error), high: Math.min(1, average + z95 * error) },
    passAtK: tries.map((_, i) => passAt(i + 1, rightTimes)),
    rightTimes,
  };
}

function standardErrorOf(shares: readonly number[], average: number | null): number | null {
  if (average === null || shares.length < 2) return null;
  const squares = shares.reduce((sum, share) => sum + (share - average) ** 2, 0);
  return Math.sqrt(squares / (shares.length - 1) / shares.length);
}

/** `rightTimes[c]` questions were right c times. */
function passAt(k: number, rightTimes: readonly number[]): number | null {
  const tries = rightTimes.length - 1;
  const questions = rightTimes.reduce((sum, count) => sum + count, 0);
  if (questions === 0) return null;
  const passed = rightTimes.reduce((sum, count, right) => sum + count * (1 - shareOfAllWrong(tries, right, k)), 0);
  return passed / questions;
}

/** C(tries - right, k) / C(tries, k): the chance that k tries, drawn without putting back, are all wrong. */
function shareOfAllWrong(tries: number, right: number, k: number): number {
  let share = 1;
  for (let i = 0; i < k; i++) share *= Math.max(0, tries - right - i) / (tries - i);
  return share;
}
