// What S_i is made of: other readings of the same log-probs than the K^-alpha sum of Algorithm 1.
import { EngineError } from '../../errors.js';
import type { Candidate, Engine, TokenContext } from '../../types.js';
import { checkedLogprobs, score } from '../scoring.js';

/** From the log-probs of each candidate's tokens, in library order, to one score per candidate in nats. */
export type Scorer = (tokenLogprobs: readonly (readonly number[])[]) => number[];

/** S_i = K_i^-alpha * sum_j log p(r_ij | h_t, r_i,<j): the paper's, its mean at alpha 1 and its sum at alpha 0. */
export function lengthNormalised(alpha: number): Scorer {
  return (rows) => rows.map((row) => score(row, alpha));
}

/**
 * S_i = sum of the log-probs from the first token at which any two candidates differ to the first at which r_i differs from
 * all others: the model's choice itself, without the tokens that follow from it. Nats of a probability, of no length.
 */
export function firstDivergent(library: readonly Pick<Candidate, 'ids'>[]): Scorer {
  const rows = library.map(({ ids }) => ids);
  const shared = rows.map((row, i) => rows.map((other, j) => (i === j ? -1 : commonPrefix(row, other))));
  const start = Math.min(...shared.flat().filter((length) => length >= 0), Number.MAX_SAFE_INTEGER);
  // In a library of one nothing differs, and its one score does not matter.
  const ends = shared.map((lengths, i) => Math.min(Math.max(...lengths) + 1, rows[i]?.length ?? 0));
  return (logprobs) => logprobs.map((row, i) => sum(row.slice(Math.min(start, ends[i] ?? 0), ends[i])));
}

/**
 * S_i = K_i^-alpha * sum_j [log p(r_ij | h_t, r_i,<j) - log p(r_ij | prior, r_i,<j)]: how much the question raises a candidate
 * over what its words weigh anyway (pointwise mutual information with the history).
 */
export function priorCorrected(prior: readonly (readonly number[])[], alpha: number): Scorer {
  return (rows) =>
    rows.map((row, i) => {
      const before = prior[i] ?? [];
      if (before.length !== row.length) {
        throw new EngineError('the prior is of another library', {
          where: `candidate ${i}`,
          expected: `${row.length} log-probs`,
          found: String(before.length),
        });
      }
      return score(row, alpha) - score(before, alpha);
    });
}

/** The candidates' log-probs behind a context without a question: one call, before the first turn and outside its time. */
export async function priorLogprobs(
  engine: Engine,
  context: TokenContext,
  library: readonly Candidate[],
  signal?: AbortSignal,
): Promise<number[][]> {
  const scoring = await engine.score(
    context,
    library.map(({ ids }) => ids),
    signal && { signal },
  );
  await engine.release(context.trajectory);
  return checkedLogprobs(scoring, library);
}

function commonPrefix(a: readonly number[], b: readonly number[]): number {
  let length = 0;
  while (length < a.length && a[length] === b[length]) length++;
  return length;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
