// Scoring and selection, Algorithm 1 lines 6-9: S_i = K_i^-alpha * sum_j log p(r_ij | h_t, r_i,<j), q = softmax(S / tau).
import { EngineError } from '../errors.js';
import type { Candidate, Scoring } from '../types.js';

/**
 * The log-probs of every candidate's tokens, after the checks that make them scores: one row per candidate, the very
 * ids that were asked for, all finite. Throws EngineError otherwise: a violation is never a score.
 */
export function checkedLogprobs(scoring: Scoring, candidates: readonly Candidate[]): number[][] {
  if (scoring.rows.length !== candidates.length) {
    throw new EngineError('wrong number of scoring rows', {
      expected: String(candidates.length),
      found: String(scoring.rows.length),
    });
  }
  return candidates.map((candidate, i) => {
    const row = scoring.rows[i] ?? [];
    if (row.length !== candidate.ids.length) {
      throw new EngineError('wrong number of log-probs', {
        where: `candidate ${candidate.id}`,
        expected: String(candidate.ids.length),
        found: String(row.length),
      });
    }
    return row.map(({ id, logprob }, j) => {
      if (id !== candidate.ids[j]) {
        throw new EngineError('scored another token than asked', {
          where: `candidate ${candidate.id}, token ${j}`,
          expected: `id ${candidate.ids[j]}`,
          found: `id ${id}`,
        });
      }
      if (!Number.isFinite(logprob) || logprob > 1e-4) {
        throw new EngineError('not a log-probability', {
          where: `candidate ${candidate.id}, token ${j}`,
          expected: 'a finite number of at most 0',
          found: String(logprob),
        });
      }
      return logprob;
    });
  });
}

/** S = K^-alpha * sum of the K log-probs, in nats; alpha 1 is their mean, alpha 0 their sum. */
export function score(logprobs: readonly number[], alpha: number): number {
  const sum = logprobs.reduce((total, logprob) => total + logprob, 0);
  return sum * logprobs.length ** -alpha;
}

/** log softmax(scores / tau). tau 0 has no distribution: tau 1 is used, for information. */
export function logSoftmax(scores: readonly number[], tau: number): number[] {
  const top = Math.max(...scores);
  // Differences first: dividing the scores themselves by a tiny tau would overflow.
  const logits = scores.map((value) => (value - top) / (tau > 0 ? tau : 1));
  const logSum = Math.log(logits.reduce((sum, logit) => sum + Math.exp(logit), 0));
  return logits.map((logit) => logit - logSum);
}

/** tau 0: the first maximum in library order. tau > 0: a draw from softmax(S / tau) with the trajectory's own random numbers. */
export function select(scores: readonly number[], tau: number, random: () => number): number {
  if (tau === 0) return scores.indexOf(Math.max(...scores));
  const draw = random();
  let cumulative = 0;
  const probabilities = logSoftmax(scores, tau).map(Math.exp);
  const index = probabilities.findIndex((probability) => {
    cumulative += probability;
    return draw < cumulative;
  });
  // Rounding may leave the sum a little below 1.
  return index === -1 ? probabilities.findLastIndex((probability) => probability > 0) : index;
}

/** Best minus second best score in nats; null when there is nothing to compare. */
export function margin(scores: readonly number[]): number | null {
  if (scores.length < 2) return null;
  const [first = 0, second = 0] = [...scores].sort((a, b) => b - a);
  return first - second;
}
