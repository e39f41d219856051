// How far two judges agree on the same answers: Cohen's kappa, kappa = (p_o - p_e) / (1 - p_e).
//   p_o = share of equal verdicts; p_e = share expected of two judges who call as many correct as these, at random

export interface Agreement {
  /** Answers that both judges decided. */
  readonly n: number;
  readonly bothCorrect: number;
  readonly bothWrong: number;
  /** Correct for the first judge only, and for the second only. */
  readonly firstOnly: readonly string[];
  readonly secondOnly: readonly string[];
  readonly agreement: number | null;
  /** Null when there is nothing to compare, or both judges give one and the same verdict throughout. */
  readonly kappa: number | null;
  /** Ids that only one of the judges decided. */
  readonly undecided: readonly string[];
}

/** Verdicts by question id; null for an answer without a verdict. */
export function agreementOf(first: ReadonlyMap<string, boolean | null>, second: ReadonlyMap<string, boolean | null>): Agreement {
  const ids = [...new Set([...first.keys(), ...second.keys()])];
  const decided = ids.filter((id) => typeof first.get(id) === 'boolean' && typeof second.get(id) === 'boolean');
  const undecided = ids.filter((id) => (typeof first.get(id) === 'boolean') !== (typeof second.get(id) === 'boolean'));
  const where = (a: boolean, b: boolean): string[] => decided.filter((id) => first.get(id) === a && second.get(id) === b);
  const [both, firstOnly, secondOnly, neither] = [where(true, true), where(true, false), where(false, true), where(false, false)];
  const n = decided.length;
  const observed = (both.length + neither.length) / n;
  const firstRate = (both.length + firstOnly.length) / n;
  const secondRate = (both.length + secondOnly.length) / n;
  const expected = firstRate * secondRate + (1 - firstRate) * (1 - secondRate);
  return {
    n,
    bothCorrect: both.length,
    bothWrong: neither.length,
    firstOnly,
    secondOnly,
    agreement: n === 0 ? null : observed,
    kappa: n === 0 || expected === 1 ? null : (observed - expected) / (1 - expected),
    undecided,
  };
}
