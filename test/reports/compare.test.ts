import { describe, expect, it } from 'vitest';
import { UsageError } from '../../src/errors.js';
import { createRandom, deriveSeed } from '../../src/random.js';
import { compareArms } from '../../src/reports/compare.js';
import { conditions } from '../../src/reports/compare-alike.js';
import { renderComparison } from '../../src/reports/compare-formats.js';
import { compareLatency } from '../../src/reports/compare-latency.js';
import { type Arm, type Facts, type Outcome, outcomeOf } from '../../src/reports/compare-outcome.js';
import { summariseArm } from '../../src/reports/compare-summary.js';
import { episode, turn } from './episodes.js';

const facts: Facts = {
  data: 'micro/plain abc',
  questions: 'plan 1 (n = 4)',
  judge: 'exact',
  model: 'w1',
  engine: 'embedded 1',
  tools: '2 text, 2 image results',
  cache: 'as it comes',
  load: '1 in flight',
  machine: 'm',
  other: { reasoning: 'selection' },
};

function outcome(id: string, correct: boolean | null, ms: Partial<Outcome> = {}): Outcome {
  return {
    id,
    type: 't',
    correct,
    failed: false,
    reasoningMs: [10],
    modelMs: 100,
    reasoningTokens: 120,
    insertedTokens: 20,
    turns: 1,
    writtenTurns: 0,
    mismatchedTurns: 0,
    warm: false,
    ...ms,
  };
}

function arm(name: string, outcomes: readonly Outcome[], overrides: Partial<Facts> = {}, benchmark = 'micro-plain'): Arm {
  const byId = new Map(outcomes.map((one) => [one.id, one]));
  return { name, runs: [{ benchmark, facts: { ...facts, ...overrides }, outcomes: byId, planned: byId.size }] };
}

const options = { margin: 0.02, seed: 1, allowed: [] };

describe('an arm against the reference', () => {
  // 10 questions: 6 right under both, 1 under the reference alone, 3 under the arm alone.
  const verdicts: [boolean, boolean][] = [
    ...Array.from({ length: 6 }, (): [boolean, boolean] => [true, true]),
    [true, false],
    ...Array.from({ length: 3 }, (): [boolean, boolean] => [false, true]),
  ];
  const reference = arm(
    'freeform',
    verdicts.map(([a], i) => outcome(`q${i}`, a, { reasoningMs: [100, 300], modelMs: 1000 })),
  );
  const ssr = arm(
    'ssr',
    verdicts.map(([, b], i) => outcome(`q${i}`, b, { reasoningMs: [10, 30], modelMs: 400 })),
  );
  const comparison = compareArms([reference, ssr], options);
  const [versus] = comparison.comparisons;

  it('is paired on success, with McNemar’s test by hand', () => {
    const { success, discordant } = versus!.benchmarks[0]!;
    expect(success.pairs).toEqual({ both: 6, onlyFirst: 1, onlySecond: 3, neither: 0 });
    expect(success.difference).toBeCloseTo(0.2, 12);
    expect(success.reference.rate).toBeCloseTo(0.7, 12);
    expect(success.arm.rate).toBeCloseTo(0.9, 12);
    // 2 * (C(4,0) + C(4,1)) / 2^4
    expect(success.p).toBeCloseTo(0.625, 12);
    expect(success.pHolm).toBeCloseTo(0.625, 12);
    expect(success.interval!.low).toBeLessThanOrEqual(-0.1);
    expect(success.interval!.high).toBeGreaterThanOrEqual(0.5);
    expect(success.verdict).toBe('undecided');
    expect(discordant).toEqual({ onlyReference: ['q6'], onlyArm: ['q7', 'q8', 'q9'] });
  });

  it('is paired on latency, of turns and of questions', () => {
    const { reasoning, model } = versus!.benchmarks[0]!;
    expect(reasoning.n).toEqual({ reference: 20, arm: 20 });
    expect(reasoning.mean).toMatchObject({ referenceMs: 200, armMs: 20, differenceMs: -180 });
    expect(reasoning.mean!.change).toBeCloseTo(-0.9, 12);
    expect(reasoning.mean!.changeInterval!.low).toBeCloseTo(-0.9, 12);
    expect(model.mean).toMatchObject({ referenceMs: 1000, armMs: 400, differenceMs: -600 });
  });

  it('is described by itself as the paper does', () => {
    expect(comparison.arms[1]).toMatchObject({
      name: 'ssr',
      average: 0.9,
      reasoningPerTurn: { n: 20, mean: 20 },
      modelPerQuestion: { n: 10, mean: 400 },
      // 120 tokens in 40 ms, of which 20 were inserted.
      tokensPerSecond: 3000,
      insertedTokensPerSecond: 500,
    });
  });
});

describe('percentiles over drawn questions', () => {
  it('are those of the pooled values', () => {
    const pairs = [
      { reference: [15, 50], arm: [1] },
      { reference: [20, 35, 40], arm: [2] },
    ];
    const { p50, p95 } = compareLatency(pairs, 1);
    expect(p50).toMatchObject({ referenceMs: 35, armMs: 1.5 });
    expect(p95?.referenceMs).toBeCloseTo(48, 12);
  });

  it('have no ratio to a reference that took no time', () => {
    const { mean } = compareLatency([{ reference: [0], arm: [3] }], 1);
    expect(mean).toMatchObject({ change: null, changeInterval: null, differenceMs: 3 });
  });

  it('do not exist for an arm without turns', () => {
    expect(compareLatency([{ reference: [1], arm: [] }], 1).mean).toBeNull();
  });
});

describe('questions without a verdict', () => {
  it('leave the pair, and failed ones the times, without becoming wrong or fast', () => {
    const reference = arm('a', [
      outcome('q0', true),
      outcome('q1', null, { failed: true, reasoningMs: [] }),
      outcome('q2', true),
    ]);
    const other = arm('b', [outcome('q0', true), outcome('q1', true), outcome('q2', false)]);
    const { success, reasoning } = compareArms([reference, other], options).comparisons[0]!.benchmarks[0]!;
    expect(success).toMatchObject({ n: 2, withoutPair: 1, difference: -0.5 });
    expect(reasoning.questions).toBe(2);
    expect(summariseArm(reference).failed).toBe(1);
  });
});

describe('several benchmarks', () => {
  const several = (name: string, rates: readonly number[]): Arm => ({
    name,
    runs: rates.map((right, b) => {
      const n = 50 * (b + 1);
      const outcomes = Array.from({ length: n }, (_, i) => outcome(`q${i}`, i < right * n));
      return arm(name, outcomes, {}, `bench-${b}`).runs[0]!;
    }),
  });

  it('weigh the same in the macro average, whatever their size, and share one correction', () => {
    const { comparisons, arms } = compareArms([several('a', [0.9, 0.5]), several('b', [0.7, 0.5])], options);
    expect(comparisons[0]!.macro!.difference).toBeCloseTo(-0.1, 12);
    expect(comparisons[0]!.macro!.verdict).toBe('no');
    expect(arms.map(({ average }) => average)).toEqual([expect.closeTo(0.7, 12), expect.closeTo(0.6, 12)]);
    const [first, second] = comparisons[0]!.benchmarks.map(({ success }) => success);
    // Ten discordant pairs on one side: 2 / 2^10.
    expect(first!.p).toBeCloseTo(2 / 1024, 12);
    expect(first!.pHolm).toBeCloseTo(4 / 1024, 12);
    expect(second).toMatchObject({ p: 1, pHolm: 1 });
  });

  it('must be the same ones', () => {
    expect(() => compareArms([several('a', [1, 1]), several('b', [1])], options)).toThrow(
      'a and b: the arms ran different benchmarks; expected bench-0, bench-1, found bench-0',
    );
  });
});

describe('arms that agree on everything', () => {
  const many = (n: number): Outcome[] => Array.from({ length: n }, (_, i) => outcome(`q${i}`, i % 3 > 0));

  it('differ by nothing, but are called no worse only where n allows it', () => {
    const of = (n: number) => compareArms([arm('a', many(n)), arm('b', many(n))], options).comparisons[0]!.benchmarks[0]!.success;
    expect(of(400)).toMatchObject({ difference: 0, p: 1, verdict: 'yes' });
    expect(of(400).interval!.high).toBeCloseTo(0.00918, 5);
    expect(of(50)).toMatchObject({ difference: 0, p: 1, verdict: 'undecided' });
    expect(of(400).intervalMethod).toContain('Clopper-Pearson');
  });
});

describe('A/A: the same arm twice', () => {
  it('covers no difference, in success and in latency, for at least 18 of 20 seeds', () => {
    const covered = { success: 0, mean: 0, p95: 0 };
    for (let seed = 0; seed < 20; seed++) {
      // Over 700 such runs the intervals covered 0 in 95.0% (success), 95.0% (mean latency) and 98.1% (p95).
      const random = createRandom(deriveSeed(9, String(seed)));
      const measured = (): Outcome[] =>
        Array.from({ length: 200 }, (_, i) =>
          outcome(`q${i}`, random() < 0.7, {
            reasoningMs: Array.from({ length: 1 + (i % 3) }, () => 20 * (1 + (i % 5)) * Math.exp(0.3 * (random() - 0.5))),
            modelMs: 100,
          }),
        );
      const { benchmarks } = compareArms([arm('a', measured()), arm('a again', measured())], { ...options, seed })
        .comparisons[0]!;
      const { success, reasoning } = benchmarks[0]!;
      const holdsZero = (interval: { low: number; high: number } | null): number =>
        Number(interval !== null && interval.low <= 0 && 0 <= interval.high);
      covered.success += holdsZero(success.interval);
      covered.mean += holdsZero(reasoning.mean!.changeInterval);
      covered.p95 += holdsZero(reasoning.p95!.differenceInterval);
    }
    for (const count of Object.values(covered)) expect(count).toBeGreaterThanOrEqual(18);
  });
});

describe('unlike arms', () => {
  const outcomes = [outcome('q0', true), outcome('q1', false)];

  it.each(conditions)('are refused by name: %s', (condition) => {
    const arms = [arm('a', outcomes), arm('b', outcomes, { [condition]: 'another' })];
    expect(() => compareArms(arms, options)).toThrow(UsageError);
    expect(() => compareArms(arms, options)).toThrow(new RegExp(`cannot compare: ${condition} differs .*found another`));
    const { differences } = compareArms(arms, { ...options, allowed: [condition] }).comparisons[0]!;
    expect(differences).toEqual([{ benchmark: 'micro-plain', condition, reference: facts[condition], arm: 'another' }]);
  });

  it('may differ in what is being compared, and say so', () => {
    const { differences } = compareArms([arm('a', outcomes), arm('b', outcomes, { other: { reasoning: 'freeform' } })], options)
      .comparisons[0]!;
    expect(differences).toEqual([{ benchmark: 'micro-plain', condition: 'reasoning', reference: 'selection', arm: 'freeform' }]);
  });

  it('are flagged where one began on the cache of the other', () => {
    const warm = arm('b', [outcome('q0', true, { warm: true }), outcome('q1', true)]);
    const comparison = compareArms([arm('a', outcomes), warm], options);
    expect(comparison.warm).toEqual([{ arm: 'b', questions: 1, n: 2 }]);
    expect(renderComparison(comparison, 'terminal')).toContain('WARM CACHE: 1 of 2 questions of b');
  });
});

describe('an outcome', () => {
  it('is what an episode’s record says', () => {
    const turns = [
      turn({ chosen: 2, action: 'text_search_tool', ms: { prefill: 5, reasoning: 7, action: 11, tool: 100 } }),
      turn({ chosen: 0, ms: { prefill: 1, reasoning: 2, action: 3 } }),
    ];
    const timingMs = { total: 500, system: 50, media: 0, judge: 0, orchestration: 0 };
    expect(outcomeOf(episode({ turns, timingMs, correct: false }))).toEqual({
      id: 'q1',
      type: 'fact',
      correct: false,
      failed: false,
      reasoningMs: [7, 2],
      modelMs: 79,
      reasoningTokens: 30,
      insertedTokens: 10,
      turns: 2,
      writtenTurns: 0,
      mismatchedTurns: 0,
      warm: false,
    });
  });

  it('tells a question that began on a warm cache', () => {
    const [first] = [turn({ chosen: 0 })];
    const warm = { ...first!, prefill: { ...first!.prefill, cachedTokens: 90 } };
    expect(outcomeOf(episode({ turns: [warm], systemLength: 20 })).warm).toBe(true);
    // The first words of the question are shared with others: 50 of 80 positions beyond the system prompt would be too many.
    const shared = { ...first!, prefill: { ...first!.prefill, cachedTokens: 60 } };
    expect(outcomeOf(episode({ turns: [shared], systemLength: 20 })).warm).toBe(false);
  });
});

describe('what the records say of the reasoning', () => {
  it('is told beside the figures: fallbacks, and written thoughts that are no entry', () => {
    const first = arm('a', [outcome('q0', true, { turns: 4, writtenTurns: 1 })]);
    const second = arm('b', [outcome('q0', true, { turns: 3, writtenTurns: 3, mismatchedTurns: 2 })]);
    const text = renderComparison(compareArms([first, second], options), 'terminal');
    expect(text).toContain('a wrote its reasoning in 1 of 4 turns');
    expect(text).toContain("2 of 3 thoughts that b wrote are no entry's text");
  });
});

describe('the formats', () => {
  const comparison = compareArms(
    [arm('free_form', [outcome('q0', true), outcome('q1', true)]), arm('ssr', [outcome('q0', true), outcome('q1', false)])],
    options,
  );

  it('LaTeX: the paper’s two tables, with what LaTeX would misread escaped', () => {
    const latex = renderComparison(comparison, 'latex');
    expect(latex).toContain('free\\_form & 100.00 & 2 \\\\');
    expect(latex).toContain(
      'method & success \\% & reasoning mean & reasoning p95 & model mean & model p95 & tokens/s & inserted/s',
    );
    expect(latex.match(/\\begin{table}/g)).toHaveLength(2);
  });

  it('Markdown: tables and notes', () => {
    const markdown = renderComparison(comparison, 'markdown');
    expect(markdown).toContain('| free_form | 100.00 | 2 |');
    expect(markdown).toContain('| micro-plain | 2 | 100.00 | 50.00 | -50.0 |');
    expect(markdown).toContain('Right with free_form alone (1): q1');
  });

  it('CSV: one table after the other, named in the first column', () => {
    const csv = renderComparison(comparison, 'csv');
    expect(csv.split('\n')[0]).toBe('table,method,micro-plain,n');
    expect(csv).toContain('Success (%),ssr,50.00,2');
  });

  it('terminal: the verdict in one sentence', () => {
    expect(renderComparison(comparison, 'terminal')).toMatch(
      /ssr on micro-plain: success within 2 points: undecided, -50\.0 \[-100\.0, 0\.0\]; reasoning latency 0\.0% \[0\.0, 0\.0\]/,
    );
  });

  it('JSON: everything', () => {
    expect(JSON.parse(renderComparison(comparison, 'json'))).toEqual(JSON.parse(JSON.stringify(comparison)));
  });
});
