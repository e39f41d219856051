import { describe, expect, it } from 'vitest';
import { profileCalls, profileGenerations, timedGenerations } from '../../src/evaluation/profile-calls.js';
import { runSweep, type SweepOptions } from '../../src/evaluation/profile-sweep.js';
import { type ProfileReport, profileLoad, profileMethods } from '../../src/reports/profile.js';
import { renderProfile } from '../../src/reports/profile-tables.js';
import type { Engine } from '../../src/types.js';
import { plainImage, testAgent } from '../support/agent.js';
import { episode, turn, unscored } from './episodes.js';

const timingMs = { total: 500, system: 50, media: 3, judge: 2, orchestration: 4 };
const searched = episode({
  id: 'q1',
  correct: false,
  timingMs,
  turns: [
    turn({ chosen: 2, action: 'text_search_tool', positions: 100, ms: { prefill: 5, reasoning: 10, action: 20, tool: 100 } }),
    turn({ chosen: 0, positions: 200, ms: { prefill: 1, reasoning: 30, action: 40, orchestration: 6 } }),
  ],
});

describe('a profile of one load', () => {
  const profile = profileLoad(2, [searched, episode({ id: 'q2' }), unscored('error')], 4, 2000);

  it('has one population: errors stand beside it', () => {
    expect(profile.questions).toEqual({ planned: 4, timed: 2, errors: 1 });
    expect(profile.success).toMatchObject({ successes: 1, n: 2 });
    expect(profile.perTurn.reasoning.n).toBe(3);
    expect(profile.perQuestion.model.n).toBe(2);
    expect(profile.questionsPerSecond).toBe(1);
  });

  it('sums phases by the published definitions', () => {
    const { perTurn, perQuestion } = profileLoad(1, [searched], 1, 1000);
    // 50 + (5 + 10 + 20) + (1 + 30 + 40)
    expect(perQuestion.model.mean).toBe(156);
    expect(perQuestion.reasoning.mean).toBe(40);
    expect(perQuestion.orchestration.mean).toBe(10);
    expect(perQuestion.total.mean).toBe(500);
    expect(perTurn.reasoning.mean).toBe(20);
    // One turn called a tool; the other is no fast call.
    expect(perTurn.tool).toMatchObject({ n: 1, mean: 100 });
  });

  it('counts tokens by both definitions', () => {
    const { tokensPerSecond, insertedTokensPerSecond, tokensPerTurn } = profileLoad(1, [searched], 1, 1000);
    // Twice 15 candidate tokens, of which 6 and 4 were inserted, in 40 ms.
    expect(tokensPerSecond).toBeCloseTo(750, 9);
    expect(insertedTokensPerSecond).toBeCloseTo(250, 9);
    expect(tokensPerTurn.history.mean).toBe(150);
    expect(tokensPerTurn.generated.mean).toBe(7);
  });

  it('audits the cache', () => {
    const [first] = searched.turns;
    const warm = { ...searched, turns: [{ ...first!, prefill: { ...first!.prefill, cachedTokens: 80 } }] };
    expect(profileLoad(1, [searched, warm], 2, 1000).cache).toMatchObject({ warmQuestions: 1, cachedTokens: 60 + 100 });
  });
});

describe('a sweep', () => {
  const options: SweepOptions = {
    base: { historyTokens: 200, candidates: 4, candidateTokens: 10, images: 0 },
    historyTokens: [100, 200, 400, 5000],
    candidates: [1, 4, 8],
    candidateTokens: [5, 10, 20],
    images: [0, 2],
    writtenTokens: [10, 20, 40],
    repeats: 2,
    seed: 1,
  };

  /** An engine whose time is known: each call moves the clock by a linear law. */
  async function timedParts() {
    let now = 0;
    const released: string[] = [];
    const wrap = (engine: Engine): Engine => ({
      ...engine,
      async score(context, continuations, call) {
        const scored = continuations.reduce((sum, ids) => sum + ids.length, 0);
        now += 3 + 0.01 * context.length + 0.2 * scored;
        return engine.score(context, continuations, call);
      },
      async generate(context, sampling, call) {
        now += 1 + 0.02 * context.length + 0.5 * sampling.maxNewTokens;
        return engine.generate(context, sampling, call);
      },
      async release(trajectory) {
        released.push(trajectory);
        return engine.release(trajectory);
      },
    });
    const policy = () => ({ candidate: 0, action: 'word '.repeat(200) });
    const { engine, tokenizer, sampling, info } = await testAgent({ script: policy, wrap, info: { contextLength: 1000 } });
    const images = [await plainImage('red'), await plainImage('blue')];
    return { parts: { engine, info, tokenizer, sampling, images, imagePad: '<|image_pad|>', clock: () => now }, released };
  }

  it('finds the law by which an engine’s time grows, and where writing becomes slower', async () => {
    const { parts } = await timedParts();
    const sweep = await runSweep(parts, options);
    expect(sweep.selectionFit?.intercept).toBeCloseTo(3, 6);
    expect(sweep.selectionFit?.slopes).toEqual([expect.closeTo(0.01, 9), expect.closeTo(0.2, 9)]);
    expect(sweep.selectionFit?.r2).toBeCloseTo(1, 9);
    expect(sweep.writingFit?.slopes).toEqual([expect.closeTo(0.02, 9), expect.closeTo(0.5, 9)]);
    // Selection at the base: 3 + 2 + 8 = 13. Writing: 1 + 4 + 0.5 n.
    expect(sweep.breakEvenTokens).toBeCloseTo(16, 6);
  });

  it('leaves out what the context does not hold, gives every cache back, and counts repeats without the first', async () => {
    const { parts, released } = await timedParts();
    const sweep = await runSweep(parts, options);
    expect(sweep.skipped).toBe(2);
    expect(sweep.selection).toHaveLength(3 + 3 + 3 + 2);
    expect(sweep.writing).toHaveLength(3 + 2);
    expect(sweep.selection.every(({ ms }) => ms.n === 2)).toBe(true);
    expect(released).toHaveLength(3 * (sweep.selection.length + sweep.writing.length));
    expect(new Set(released).size).toBe(released.length);
    const withImages = sweep.selection.find(({ images }) => images === 2);
    expect(withImages?.positions).toBeGreaterThan(200);
  });
});

describe('a timed engine', () => {
  it('tells first token and decoding of each generation, and passes tokens on', async () => {
    let now = 0;
    const { engine, sampling, tokenizer } = await testAgent({
      script: () => ({ candidate: 0, action: '<answer>Oslo</answer>' }),
      wrap: (inner) => ({
        ...inner,
        async generate(context, eta, options = {}) {
          now += 7;
          const { onToken, ...rest } = options;
          const generation = await inner.generate(context, eta, rest);
          for (const token of generation.tokens) {
            onToken?.(token);
            now += 2;
          }
          return generation;
        },
      }),
    });
    const told: unknown[] = [];
    const timed = timedGenerations(
      engine,
      () => now,
      (generation) => told.push(generation),
    );
    const ids = tokenizer.encode('Which city?');
    const seen: number[] = [];
    const onToken = ({ id }: { id: number }) => void seen.push(id);
    const { tokens } = await timed.generate({ trajectory: 'q', ids, images: [], length: ids.length }, sampling, { onToken });
    expect(told).toEqual([{ firstTokenMs: 7, decodeMs: 2 * (tokens.length - 1), tokens: tokens.length }]);
    expect(seen).toEqual(tokens.map(({ id }) => id));
  });
});

describe('the report', () => {
  const report: ProfileReport = {
    schema: 1,
    arm: 'selection',
    benchmark: 'micro-plain',
    seed: 42,
    sample: ['q1'],
    warmUp: [{ id: 'q9', status: 'answer', ms: 700 }],
    ...profileMethods,
    loads: [profileLoad(1, [searched], 1, 1000), profileLoad(2, [searched], 1, 800)],
    generations: profileGenerations([
      { firstTokenMs: 4, decodeMs: 20, tokens: 11 },
      { firstTokenMs: 6, decodeMs: 0, tokens: 1 },
    ]),
    calls: profileCalls([
      { verb: 'score', totalMs: 30, queueMs: 4, retryMs: 6, serverMs: 15, forwardMs: null },
      { verb: 'score', totalMs: 22, queueMs: 0, retryMs: 0, serverMs: 17, forwardMs: null },
    ]),
    sweep: null,
  };

  it('marks bounds that n is too small for, and names its methods', () => {
    const text = renderProfile(report, 'terminal');
    expect(text).toContain('156.0 [0, ∞]');
    expect(text).toContain('type 7');
    expect(text).toContain('distribution-free');
    expect(text).toContain('1 warm-up questions asked first and not counted');
    expect(text).toContain('Latency against load');
  });

  it('shows first tokens, decoding, and client beside server time', () => {
    const text = renderProfile(report, 'csv');
    expect(text).toContain('first token,5.00');
    // 20 ms between 11 tokens; a single token has no next one.
    expect(text).toContain('each further token,2.000');
    // (30 - 4 - 6 + 22) / 2
    expect(text).toContain('"score, client",21.00');
    expect(text).toContain('"score, server",16.00');
    expect(text).not.toContain('score, model');
  });

  it('has the row of the published table', () => {
    expect(renderProfile(report, 'csv').split('\n').slice(0, 2)).toEqual([
      'table,method,success %,reasoning mean,reasoning p95,model mean,model p95,tokens/s,inserted/s,n',
      '"Profile (latency in s, throughput in tokens/s)",selection,0.00,0.020,0.029,0.156,0.156,750.0,250.0,1',
    ]);
  });

  it.each(['markdown', 'latex', 'json'] as const)('is written as %s', (format) => {
    expect(renderProfile(report, format)).toContain(format === 'json' ? '"schema": 1' : 'reasoning per turn');
  });
});
