import { describe, expect, it } from 'vitest';
import { checkedLogprobs, logSoftmax, margin, score, select } from '../../src/agent/scoring.js';
import { EngineError } from '../../src/errors.js';
import { createRandom } from '../../src/random.js';
import type { Candidate, Scoring } from '../../src/types.js';

const candidate = (id: string, ids: number[]): Candidate => ({ id, ids, text: id, expectedActions: [] });
const usage = { promptTokens: 0, cachedTokens: 0, computedTokens: 0, imagesEncoded: 0 };
const scoring = (...rows: [number, number][][]): Scoring => ({
  usage,
  rows: rows.map((row) => row.map(([id, logprob]) => ({ id, logprob }))),
});

describe('score', () => {
  it('is the mean at alpha 1, the sum at alpha 0 and K^-1/2 times the sum between', () => {
    expect(score([-1, -2, -3, -2], 1)).toBe(-2);
    expect(score([-1, -2, -3, -2], 0)).toBe(-8);
    expect(score([-1, -2, -3, -2], 0.5)).toBe(-4);
  });
});

describe('select', () => {
  it('takes the first maximum at tau 0', () => {
    expect(select([-2, -1, -1], 0, () => 0.99)).toBe(1);
  });

  it('draws from softmax(S / tau)', () => {
    const scores = [-1, -2, -3];
    const tau = 0.7;
    const random = createRandom(5);
    const draws = 40_000;
    const counts = [0, 0, 0];
    for (let i = 0; i < draws; i++) counts[select(scores, tau, random)]! += 1;
    const weights = scores.map((value) => Math.exp(value / tau));
    const total = weights.reduce((sum, weight) => sum + weight, 0);
    // Four standard errors of a share.
    counts.forEach((count, i) => {
      const expected = weights[i]! / total;
      expect(Math.abs(count / draws - expected)).toBeLessThan(4 * Math.sqrt((expected * (1 - expected)) / draws));
    });
  });

  it('survives the smallest temperatures', () => {
    const scores = [-6.4, -0.0003, -5.4];
    expect(select(scores, 1e-320, () => 0.999)).toBe(1);
    expect(logSoftmax(scores, 1e-320)[1]).toBe(0);
  });

  it('draws the same with the same seed', () => {
    const sequence = (seed: number): number[] => {
      const random = createRandom(seed);
      return Array.from({ length: 50 }, () => select([-1, -1.1, -1.2], 1, random));
    };
    expect(sequence(3)).toEqual(sequence(3));
    expect(sequence(3)).not.toEqual(sequence(4));
  });
});

describe('logSoftmax', () => {
  it('sums to one and survives scores far below the range of exp', () => {
    const logs = logSoftmax([-2000, -2001, -2005], 1);
    expect(logs.reduce((sum, value) => sum + Math.exp(value), 0)).toBeCloseTo(1, 12);
    expect(logs[0]! - logs[1]!).toBeCloseTo(1, 12);
  });
});

describe('margin', () => {
  it('is best minus second best, and null for a library of one', () => {
    expect(margin([-3, -1, -1.5])).toBe(0.5);
    expect(margin([-3])).toBeNull();
  });
});

describe('checkedLogprobs', () => {
  const library = [candidate('a', [5, 6]), candidate('b', [7])];

  it('hands out the log-probs of a sound reply', () => {
    expect(
      checkedLogprobs(
        scoring(
          [
            [5, -1],
            [6, -2],
          ],
          [[7, -0.5]],
        ),
        library,
      ),
    ).toEqual([[-1, -2], [-0.5]]);
  });

  it.each([
    [
      'a missing row',
      scoring([
        [5, -1],
        [6, -2],
      ]),
      'wrong number of scoring rows',
    ],
    ['a short row', scoring([[5, -1]], [[7, -1]]), 'candidate a: wrong number of log-probs'],
    [
      'rows in another order',
      scoring(
        [
          [7, -1],
          [6, -2],
        ],
        [[5, -1]],
      ),
      'candidate a, token 0: scored another token',
    ],
    [
      'NaN',
      scoring(
        [
          [5, Number.NaN],
          [6, -2],
        ],
        [[7, -1]],
      ),
      'not a log-probability',
    ],
    [
      'minus infinity',
      scoring(
        [
          [5, -1],
          [6, -2],
        ],
        [[7, Number.NEGATIVE_INFINITY]],
      ),
      'not a log-probability',
    ],
    [
      'a positive log-prob',
      scoring(
        [
          [5, -1],
          [6, 0.5],
        ],
        [[7, -1]],
      ),
      'not a log-probability',
    ],
  ])('refuses %s', (_, reply, message) => {
    expect(() => checkedLogprobs(reply, library)).toThrow(EngineError);
    expect(() => checkedLogprobs(reply, library)).toThrow(message);
  });
});
