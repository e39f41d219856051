// When no candidate fits, another way to reason takes the turn: off unless asked for, and counted.
import type { Reasoner, Usage } from '../../types.js';

export interface FallbackOptions {
  /** Margin best to second best, in nats, below which the choice is not taken. */
  readonly margin: number;
  /** Sees each turn that falls back, with the margin that was too small. */
  readonly onFallback?: (margin: number) => void;
}

/** `primary` decides; where its margin is below `margin` the turn's reasoning is `fallback`'s, and its record has no selection. */
export function withFallback(primary: Reasoner, fallback: Reasoner, { margin, onFallback }: FallbackOptions): Reasoner {
  return {
    name: `${primary.name}, else ${fallback.name}`,
    maxTokens: Math.max(primary.maxTokens, fallback.maxTokens),
    async reason(...args) {
      const chosen = await primary.reason(...args);
      const found = chosen.selection?.margin ?? null;
      if (found === null || found >= margin) return chosen;
      onFallback?.(found);
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
