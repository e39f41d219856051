// Text search over passages on this machine: BM25 with k1 = 1.2 and b = 0.75 over one field.
//   BM25(q, p) = sum over matched terms w of idf(w) * f(w, p) (k1 + 1) / (f(w, p) + k1 (1 - b + b |p| / mean |p|))
// where idf(w) = ln(1 + (P - P_w + 1/2) / (P_w + 1/2)), P_w of P passages hold w, and |p| counts distinct words.
import MiniSearch from 'minisearch';
import type { SearchResult, TextSearch } from '../../types.js';

export interface Passage {
  readonly id: string;
  readonly text: string;
}

export interface LocalTextSearchOptions {
  /** Most results per query. */
  readonly results: number;
}

const bm25 = { k: 1.2, b: 0.75, d: 0 };

/** Indexes the passages at once (ids must differ) and answers every query the same way; equal scores keep the passages' order. */
export function createLocalTextSearch(passages: readonly Passage[], options: LocalTextSearchOptions): TextSearch {
  const index = new MiniSearch<{ id: number; text: string }>({ fields: ['text'], searchOptions: { bm25 } });
  index.addAll(passages.map(({ text }, id) => ({ id, text })));
  return {
    name: 'local-bm25',
    async search(query, signal) {
      signal?.throwIfAborted();
      return rank(index, query)
        .slice(0, options.results)
        .map((position): SearchResult => ({ text: passages[position]?.text ?? '' }));
    },
  };
}

/** Positions of the matching passages, best first. MiniSearch multiplies a score by the number of matched terms; BM25 does not. */
function rank(index: MiniSearch<{ id: number; text: string }>, query: string): number[] {
  return index
    .search(query)
    .map(({ id, score, queryTerms }) => ({ position: Number(id), score: score / Math.max(1, queryTerms.length) }))
    .sort((a, b) => b.score - a.score || a.position - b.position)
    .map(({ position }) => position);
}
