// Selection-based structured reasoning: the model does not write z_t, it chooses it (Algorithm 1, lines 5-9).
import type { Candidate, Engine, Reasoner } from '../../types.js';
import { checkedLogprobs, logSoftmax, margin, score, select } from '../scoring.js';

export interface SelectionOptions {
  /** Length exponent in [0, 1]: 1 scores by the mean log-prob, 0 by the sum. */
  readonly alpha: number;
  /** Selection temperature; 0 takes the best. */
  readonly tau: number;
}

/** Scores all candidates in one request and inserts the chosen one whole. */
export function selectionReasoner(engine: Engine, library: readonly Candidate[], { alpha, tau }: SelectionOptions): Reasoner {
  return {
    name: 'selection',
    maxTokens: Math.max(...library.map(({ ids }) => ids.length)),
    async reason(context, _eta, random, signal) {
      const continuations = library.map(({ ids }) => ids);
      const scoring = await engine.score(context, continuations, signal && { signal });
      const tokenLogprobs = checkedLogprobs(scoring, library);
      const scores = tokenLogprobs.map((row) => score(row, alpha));
      const index = select(scores, tau, random);
      const logProbabilities = logSoftmax(scores, tau);
      const chosen = library[index] as Candidate;
      return {
        ids: chosen.ids,
        usage: scoring.usage,
        written: null,
        action: null,
        selection: {
          index,
          candidate: chosen.id,
          scores,
          probabilities: logProbabilities.map(Math.exp),
          logProbability: logProbabilities[index] as number,
          margin: margin(scores),
          tokenLogprobs,
        },
      };
    },
  };
}
