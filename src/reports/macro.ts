// The macro average: every benchmark weighs the same, however many questions it has.
//   mean = sum_b p_b / m        standard error = sqrt(sum_b SE_b^2) / m        SE_b^2 = p_b (1 - p_b) / n_b for a single run
// Benchmarks count as independent, as they are sets of different questions.

export interface MacroAverage {
  /** Benchmarks that went in. */
  readonly m: number;
  /** Null when a benchmark has no rate: an average over the others would be another figure. */
  readonly mean: number | null;
  readonly standardError: number | null;
}

export const macroMethod = 'mean of m rates; standard error sqrt(sum of p(1 - p)/n) / m';

export function macroAverage(
  rates: readonly { readonly rate: number | null; readonly standardError: number | null }[],
): MacroAverage {
  const m = rates.length;
  let [sum, variance] = [0, 0];
  for (const { rate, standardError } of rates) {
    if (rate === null || standardError === null) return { m, mean: null, standardError: null };
    sum += rate;
    variance += standardError ** 2;
  }
  return m === 0 ? { m, mean: null, standardError: null } : { m, mean: sum / m, standardError: Math.sqrt(variance) / m };
}
