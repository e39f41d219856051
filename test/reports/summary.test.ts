import { describe, expect, it } from 'vitest';
import type { Episode } from '../../src/evaluation/records.js';
import { createSummary, type Summary } from '../../src/reports/summary.js';
import { floorTokens } from '../../src/reports/work.js';
import { candidates, episode, turn, unscored } from './episodes.js';

function summarise(episodes: readonly Episode[], planned = episodes.length): Summary {
  const summary = createSummary({ planned, candidates });
  for (const record of episodes) summary.add(record);
  return summary.result();
}

describe('success', () => {
  const failed = { kind: 'JudgeError', message: 'no verdict' };
  const summary = summarise(
    [
      episode({ type: 'shape' }),
      episode({ type: 'shape', correct: false }),
      episode({ type: 'fact', correct: false, status: 'turn-limit', answer: null }),
      unscored('error', { kind: 'EngineError', message: 'lost' }),
      unscored('cancelled'),
      unscored('tool-error'),
      episode({ correct: null, error: failed }),
      episode({ correct: null, answers: [] }),
    ],
    10,
  );

  it('counts verdicts only, over all questions and per type in alphabetical order', () => {
    expect(summary.success.overall).toMatchObject({ successes: 1, n: 3, rate: 1 / 3 });
    expect(summary.success.overall.interval?.low).toBeCloseTo(0.06149, 5);
    expect(Object.entries(summary.success.byType)).toEqual([
      ['fact', expect.objectContaining({ successes: 0, n: 1, rate: 0, unscored: 5 })],
      ['shape', expect.objectContaining({ successes: 1, n: 2, rate: 0.5, unscored: 0 })],
    ]);
  });

  it('keeps a ledger whose parts sum to the plan', () => {
    const { planned, scored, unscored: missing, notRun } = summary.questions;
    expect(summary.questions).toEqual({
      planned: 10,
      scored: 3,
      unscored: { error: 1, 'tool-error': 1, cancelled: 1, 'judge-error': 1, 'no-gold': 1 },
      notRun: 2,
    });
    expect(scored + Object.values(missing).reduce((sum, count) => sum + count, 0) + notRun).toBe(planned);
  });

  it('lists the stops that occurred in a fixed order', () => {
    expect(Object.entries(summary.stops)).toEqual([
      ['answer', 4],
      ['tool-error', 1],
      ['turn-limit', 1],
      ['error', 1],
      ['cancelled', 1],
    ]);
  });
});

describe('selection', () => {
  const summary = summarise([
    episode({ expected: ['r_SEARCH', 'r_KNOW'], turns: [turn({ chosen: 2, action: 'text_search_tool' }), turn({ chosen: 0 })] }),
    // Leaves the path in its first turn: the second says nothing about the benchmark's expectation.
    episode({
      expected: ['r_SEARCH', 'r_KNOW'],
      turns: [turn({ chosen: 1, action: 'text_search_tool' }), turn({ chosen: 0, margin: 1.5 })],
    }),
    // Stops early, and goes on beyond the reference.
    episode({ expected: ['r_SEARCH', 'r_KNOW'], turns: [turn({ chosen: 2, action: 'invalid', margin: null })] }),
    episode({ expected: ['r_KNOW'], turns: [turn({ chosen: 0, action: 'text_search_tool' }), turn({ chosen: 0 })] }),
  ]).selection;

  it('is counted in library order', () => {
    expect(summary.turns).toBe(7);
    expect(summary.candidates).toEqual([
      { candidate: 'r_KNOW', turns: 4, n: 7, share: 4 / 7 },
      { candidate: 'r_ZOOM', turns: 1, n: 7, share: 1 / 7 },
      { candidate: 'r_SEARCH', turns: 2, n: 7, share: 2 / 7 },
    ]);
  });

  it('agrees with the action when the chosen entry expects it', () => {
    expect(summary.actionAgreement).toEqual({ turns: 4, n: 7, share: 4 / 7 });
  });

  it('is compared with the expected candidate while earlier turns matched', () => {
    expect(summary.expected).toMatchObject({ turns: 4, n: 5, share: 0.8 });
    expect(summary.expected.confusion).toEqual({
      r_KNOW: { r_KNOW: 2, r_ZOOM: 0, r_SEARCH: 0 },
      r_ZOOM: { r_KNOW: 0, r_ZOOM: 0, r_SEARCH: 0 },
      r_SEARCH: { r_KNOW: 0, r_ZOOM: 1, r_SEARCH: 2 },
    });
  });

  it('has a margin where there is a second candidate', () => {
    expect(summary.margin).toMatchObject({ n: 6, mean: (5 * 0.5 + 1.5) / 6, p50: 0.5 });
  });
});

describe('latency', () => {
  const ms = { prefill: 10, reasoning: 20, action: 30, tool: 5, media: 1, orchestration: 2 };
  const summary = summarise([
    episode({
      turns: [turn({ chosen: 2, action: 'text_search_tool', ms }), turn({ chosen: 0, ms: { ...ms, reasoning: 40, tool: 0 } })],
      timingMs: { total: 200, system: 3, media: 4, judge: 6, orchestration: 7 },
    }),
    episode({ turns: [turn({ chosen: 1, ms })], timingMs: { total: 100, system: 0, media: 4, judge: 6, orchestration: 7 } }),
    unscored('error', { kind: 'EngineError', message: 'lost' }),
  ]);

  it('per turn has one population for all figures, without questions that failed', () => {
    expect(summary.latency.perTurn.reasoning).toEqual({ n: 3, mean: 80 / 3, p50: 20, p95: 38 });
    expect(summary.latency.percentiles).toContain('type 7');
  });

  it('per tool call leaves out the turns without one', () => {
    expect(summary.latency.perTurn.tool).toEqual({ n: 1, mean: 5, p50: 5, p95: 5 });
  });

  it('per question is system prefill + sum of prefill, reasoning and action, the rest beside it', () => {
    const { perQuestion } = summary.latency;
    expect(perQuestion.model).toMatchObject({ n: 2, mean: (3 + 60 + 80 + 60) / 2 });
    expect(perQuestion.tool.mean).toBe(5);
    expect(perQuestion.media.mean).toBe((4 + 2 + 4 + 1) / 2);
    expect(perQuestion.orchestration.mean).toBe((7 + 4 + 7 + 2) / 2);
    expect(perQuestion.judge.mean).toBe(6);
    expect(perQuestion.total).toMatchObject({ mean: 150, p50: 150, p95: 195 });
  });

  it('gives the throughput by scored and by inserted tokens', () => {
    // 3 turns of 15 scored tokens; inserted 6 + 4 + 5; 80 ms of reasoning.
    expect(summary.throughput).toEqual({
      scoredTokensPerSecond: 562.5,
      insertedTokensPerSecond: 187.5,
      scoredTokens: 45,
      insertedTokens: 15,
      reasoningSeconds: 0.08,
    });
  });

  it('does not depend on the order in which questions end', () => {
    const records = [0.1, 0.2, 0.3, 0.7, 1e9].map((reasoning) => episode({ turns: [turn({ chosen: 0, margin: reasoning })] }));
    expect(summarise([...records].reverse())).toEqual(summarise(records));
  });
});

describe('work', () => {
  // h_0 of 100 positions, 20 of them system; z 6, a 9, o 25 give h_1 of 140; z 4, a 7.
  const turns = [
    turn({ chosen: 2, action: 'text_search_tool', positions: 100, actionLength: 9, computed: [80, 15, 8] }),
    turn({ chosen: 0, positions: 140, actionLength: 7, computed: [26, 15, 6] }),
  ];

  it('has a floor of each history token, each candidate and each action token once', () => {
    expect(floorTokens({ turns, systemLength: 20 })).toBe(80 + (15 + 9) + 25 + (15 + 7));
    expect(floorTokens({ turns: [], systemLength: 20 })).toBe(0);
  });

  it('is compared with what was computed', () => {
    expect(summarise([episode({ turns })]).work).toEqual({
      computedTokens: 150,
      floorTokens: 151,
      ratio: 150 / 151,
      cachedTokens: 60,
      imagesEncoded: 0,
      generatedTokens: 16,
    });
  });
});

describe('a run without a question', () => {
  it('has no figures, and no zeros in their place', () => {
    const summary = summarise([], 5);
    expect(summary.questions).toMatchObject({ planned: 5, scored: 0, notRun: 5 });
    expect(summary.success.overall).toEqual({ successes: 0, n: 0, rate: null, interval: null });
    expect(summary.selection.actionAgreement.share).toBeNull();
    expect(summary.latency.perTurn.prefill).toEqual({ n: 0, mean: null, p50: null, p95: null });
    expect(summary.throughput.scoredTokensPerSecond).toBeNull();
    expect(summary.work.ratio).toBeNull();
  });
});
