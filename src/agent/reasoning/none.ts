// No reasoning at all: the action follows the history directly.
import type { Reasoner } from '../../types.js';

export function noReasoner(): Reasoner {
  return {
    name: 'none',
    maxTokens: 0,
    async reason({ length }) {
      const usage = { promptTokens: length, cachedTokens: length, computedTokens: 0, imagesEncoded: 0 };
      return { ids: [], selection: null, written: null, action: null, usage };
    },
  };
}
