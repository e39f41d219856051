// Selection-based structured reasoning: the model does not write z_t, it chooses it (Algorithm 1, lines 5-9).
import type { Candidate, Engine, Reasoner, Selection } from '../../types.js';
import { checkedLogprobs, logSoftmax, margin, select } from '../scoring.js';
import { lengthNormalised, type Scorer } from './scorers.js';

export interface SelectionOptions {
  /** Length exponent in [0, 1]: 1 scores by the mean log-prob, 0 by the sum. */
  readonly alpha: number;
  /** Selection temperature; 0 takes the best. */
  readonly tau: number;
  /** Another reading of the log-probs than alpha's. */
  readonly scorer?: Scorer;
}

/** Scores all candidates in one request and inserts the chosen one whole. */
export function selectionReasoner(engine: Engine, library: readonly Candidate[], options: SelectionOptions): Reasoner {
  const { alpha, tau, scorer = lengthNormalised(alpha) } = options;
  return {
    name: 'selection',
    maxTokens: Math.max(...library.map(({ ids }) => ids.length)),
    async reason(context, _eta, random, signal) {
      const continuations = library.map(({ ids }) => ids);
      const scoring = await engine.score(context, continuations, signal && { signal });
      const tokenLogprobs = checkedLogprobs(scoring, library);
      const selection = decide(library, tokenLogprobs, scorer(tokenLogprobs), tau, random);
      const { ids } = library[selection.index] as Candidate;
      return { ids, usage: scoring.usage, written: null, action: null, selection };
    },
  };
}

/** The choice among scored candidates and everything needed to check it again. */
export function decide(
  library: readonly Candidate[],
  tokenLogprobs: readonly (readonly number[])[],
  scores: readonly number[],
  tau: number,
  random: () => number,
): Selection {
  const index = select(scores, tau, random);
  const logProbabilities = logSoftmax(scores, tau);
  return {
    index,
    candidate: (library[index] as Candidate).id,
    scores,
    probabilities: logProbabilities.map(Math.exp),
    logProbability: logProbabilities[index] as number,
    margin: margin(scores),
    tokenLogprobs,
  };
}
