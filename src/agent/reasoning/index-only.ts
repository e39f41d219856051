// Selection by index: the model scores the candidate's number in the prompt, `[i]`, and the same full text is inserted.
// Cheaper to score; the inserted text is computed by the call that generates the action.
import type { Candidate, Dialect, Engine, Reasoner, Tokenizer } from '../../types.js';
import { checkedLogprobs, score } from '../scoring.js';
import { decide, type SelectionOptions } from './selection.js';
import { thoughtTags } from './thought.js';

/** The candidates as their numbers: `<thinking>[i]`, i counted in the order of the prompt, which sorts by id. */
export function indexCandidates(library: readonly Candidate[], dialect: Dialect, tokenizer: Tokenizer): Candidate[] {
  const { open } = thoughtTags(dialect);
  const listed = library.map(({ id }) => id).sort((a, b) => (a < b ? -1 : 1));
  return library.map((candidate) => ({ ...candidate, ids: tokenizer.encode(`${open}[${listed.indexOf(candidate.id)}]`) }));
}

/** `numbers` are the candidates as their numbers, in the order of `library`. */
export function indexReasoner(
  engine: Engine,
  library: readonly Candidate[],
  numbers: readonly Candidate[],
  { alpha, tau, scorer }: SelectionOptions,
): Reasoner {
  return {
    name: 'index',
    maxTokens: Math.max(...[...library, ...numbers].map(({ ids }) => ids.length)),
    async reason(context, _eta, random, signal) {
      const scoring = await engine.score(
        context,
        numbers.map(({ ids }) => ids),
        signal && { signal },
      );
      const tokenLogprobs = checkedLogprobs(scoring, numbers);
      const scores = scorer?.(tokenLogprobs) ?? tokenLogprobs.map((row) => score(row, alpha));
      const selection = decide(library, tokenLogprobs, scores, tau, random);
      const { ids } = library[selection.index] as Candidate;
      return { ids, usage: scoring.usage, written: null, action: null, selection };
    },
  };
}
