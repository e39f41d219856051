// Records for report tests, whole enough for the schema; every figure can be checked by hand.
import { type Episode, type EpisodeTurn, episodeSchema } from '../../src/evaluation/records.js';

export const candidates = [
  { id: 'r_KNOW', expectedActions: ['answer'] },
  { id: 'r_ZOOM', expectedActions: ['image_zoom_in_tool'] },
  { id: 'r_SEARCH', expectedActions: ['text_search_tool'] },
];

/** Candidates take 4, 5 and 6 tokens: 15 in all. */
const lengths = [4, 5, 6];

export interface TurnOptions {
  readonly chosen: number;
  readonly action?: 'answer' | 'text_search_tool' | 'invalid';
  readonly positions?: number;
  readonly actionLength?: number;
  readonly margin?: number | null;
  readonly ms?: Partial<EpisodeTurn['timingMs']>;
  /** Positions computed in prefill, reasoning and action. */
  readonly computed?: readonly [number, number, number];
}

export function turn(options: TurnOptions): EpisodeTurn {
  const { chosen, action = 'answer', positions = 100, actionLength = 7, margin = 0.5, ms = {}, computed = [0, 0, 0] } = options;
  const usage = (computedTokens: number) => ({ promptTokens: positions, cachedTokens: 10, computedTokens, imagesEncoded: 0 });
  const parsed = {
    answer: { kind: 'answer', text: 'x' },
    text_search_tool: { kind: 'text_search_tool', query: 'x' },
    invalid: { kind: 'invalid', reason: 'no tag' },
  }[action] as EpisodeTurn['action']['parsed'];
  return {
    history: { length: positions, positions },
    prefill: usage(computed[0]),
    reasoning: {
      length: lengths[chosen] ?? 0,
      usage: usage(computed[1]),
      written: null,
      selection: {
        index: chosen,
        candidate: candidates[chosen]?.id ?? 'r_OTHER',
        scores: [-1, -2, -3],
        probabilities: [0.6, 0.3, 0.1],
        logProbability: -0.5,
        margin,
        tokenLogprobs: lengths.map((length) => Array.from({ length }, () => -1)),
      },
    },
    action: {
      length: actionLength,
      text: '',
      logprobs: Array.from({ length: actionLength }, () => -0.1),
      finishReason: 'stop',
      parsed,
      usage: usage(computed[2]),
    },
    observation: action === 'text_search_tool' ? { length: 5, images: [], result: { kind: 'results', results: [] } } : null,
    timingMs: { prefill: 0, reasoning: 0, action: 0, tool: 0, media: 0, orchestration: 0, ...ms },
  };
}

export function episode(overrides: Partial<Episode> = {}): Episode {
  return episodeSchema.parse({
    schema: 1,
    id: 'q1',
    type: 'fact',
    seed: 1,
    status: 'answer',
    reason: null,
    answer: 'x',
    answers: ['x'],
    correct: true,
    judge: 'exact',
    error: null,
    expected: null,
    ids: [],
    positions: 0,
    systemLength: 20,
    system: { promptTokens: 20, cachedTokens: 20, computedTokens: 0, imagesEncoded: 0 },
    images: [],
    turns: [turn({ chosen: 0 })],
    timingMs: { total: 0, system: 0, media: 0, judge: 0, orchestration: 0 },
    ...overrides,
  });
}

/** An episode that ended without a verdict. */
export function unscored(status: Episode['status'], error: Episode['error'] = null): Episode {
  return episode({ status, correct: null, answer: null, error, turns: [turn({ chosen: 2, ms: { reasoning: 9999 } })] });
}
