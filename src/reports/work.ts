// Tokens computed against the least that could be: each history token once, every candidate once a turn, each action token once.
import { type Episode, reasoningTokens } from '../evaluation/records.js';

export interface WorkSummary {
  /** Positions that the engine computed in prefills, scoring and generation. */
  readonly computedTokens: number;
  readonly floorTokens: number;
  /** computed / floor; slightly below 1 where the last token of an action is never read. */
  readonly ratio: number | null;
  readonly cachedTokens: number;
  readonly imagesEncoded: number;
  /** New tokens: actions, and thoughts that the model wrote. */
  readonly generatedTokens: number;
}

/** The system turn is shared by all questions and computed before the first: no part of the floor, so computing it again shows. */
export function createWork() {
  const work = { computedTokens: 0, floorTokens: 0, cachedTokens: 0, imagesEncoded: 0, generatedTokens: 0 };
  return {
    add(episode: Episode): void {
      work.floorTokens += floorTokens(episode);
      work.computedTokens += episode.system?.computedTokens ?? 0;
      for (const { prefill, reasoning, action } of episode.turns) {
        work.generatedTokens += action.length + (reasoning.written?.length ?? 0);
        for (const usage of [prefill, reasoning.usage, action.usage]) {
          work.computedTokens += usage.computedTokens;
          work.cachedTokens += usage.cachedTokens;
          work.imagesEncoded += usage.imagesEncoded;
        }
      }
    },
    result: (): WorkSummary => ({ ...work, ratio: work.floorTokens === 0 ? null : work.computedTokens / work.floorTokens }),
  };
}

/**
 * (L_0 - |s|) + sum over turns of (sum of K_i + |a_t|) + sum over turns but the last of |o_t|, in expanded positions, where
 * |o_t| = L_{t+1} - L_t - |z_t| - |a_t|. The last observation, if there is one, is never read.
 */
export function floorTokens({ turns, systemLength }: Pick<Episode, 'turns' | 'systemLength'>): number {
  return turns.reduce(
    (floor, { history, reasoning, action }, t) => {
      const next = turns[t + 1];
      const scored = reasoningTokens(reasoning);
      const observed = next ? next.history.positions - history.positions - reasoning.length - action.length : 0;
      return floor + scored + action.length + observed;
    },
    (turns[0]?.history.positions ?? systemLength) - systemLength,
  );
}
