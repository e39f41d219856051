// When no candidate fits, another way to reason takes the turn: off unless asked for.
import type { Reasoner, Usage } from '../../types.js';

export interface FallbackOptions {
  /** Margin best to second best, in nats, below which the choice is not taken. */
  readonly margin: number;
}

/** `primary` decides; where its margin is below `margin` the turn's reasoning is `fallback`'s, and its record has no selection: so they are counted. */
export function withFallback(primary: Reasoner, fallback: Reasoner, { margin }: FallbackOptions): Reasoner {
  return {
    name: `${primary.name}, else ${fallback.name}`,
    maxTokens: Math.max(primary.maxTokens, fallback.maxTokens),
    async reason(...args) {
      const chosen = await primary.reason(...args);
      const found = chosen.selection?.margin ?? null;
      if (found === null || found >= margin) return chosen;
      const written = await fallback.reason(...args);
      return { ...written, usage: sum(chosen.usage, written.usage) };
    },
  };
}

/** Work of two calls behind one history: its positions were needed once. */
function sum(first: Usage, second: Usage): Usage {
  const waitedMs = (first.waitedMs ?? 0) + (second.waitedMs ?? 0);
  return {
    promptTokens: second.promptTokens,
    cachedTokens: second.cachedTokens,
    computedTokens: first.computedTokens + second.computedTokens,
    imagesEncoded: first.imagesEncoded + second.imagesEncoded,
    ...(waitedMs > 0 && { waitedMs }),
  };
}
