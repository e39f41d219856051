import { describe, expect, it } from 'vitest';
import {
  describeDistribution,
  mean,
  percentile,
  percentileMethod,
  rate,
  wilsonInterval,
} from '../../src/evaluation/statistics.js';

describe("Wilson's interval", () => {
  // scipy.stats.binomtest(k, n).proportion_ci(0.95, 'wilson') of SciPy 1.17.1
  it.each([
    [0, 1, 0, 0.7934506856227626],
    [1, 1, 0.20654931437723745, 1],
    [1, 3, 0.06149194472039626, 0.7923403991979523],
    [7, 10, 0.39677814746114526, 0.892208732593699],
    [0, 400, 0, 0.009512294334296508],
    [391, 400, 0.9577973424412418, 0.9881184164695049],
    [400, 400, 0.9904877056657035, 1],
    [698, 700, 0.9896429368497793, 0.9992161183786058],
  ])('of %d in %d is SciPy’s', (successes, n, low, high) => {
    const interval = wilsonInterval(successes, n);
    expect(interval.low).toBeCloseTo(low, 12);
    expect(interval.high).toBeCloseTo(high, 12);
  });

  it('does not exist without data', () => {
    expect(() => wilsonInterval(0, 0)).toThrow('n >= 1, found 0 of 0');
    expect(rate(0, 0)).toEqual({ successes: 0, n: 0, rate: null, interval: null });
  });

  it.each([
    [3, 2],
    [-1, 2],
    [0.5, 2],
    [1, Number.NaN],
  ])('refuses %d of %d', (successes, n) => {
    expect(() => wilsonInterval(successes, n)).toThrow(RangeError);
  });

  it('stands beside its rate', () => {
    expect(rate(7, 10)).toMatchObject({ successes: 7, n: 10, rate: 0.7, interval: { low: expect.closeTo(0.39678, 5) } });
  });
});

describe('percentiles', () => {
  // numpy.percentile(values, q) of NumPy 2.4.6, default method `linear`
  it.each([
    [[15, 20, 35, 40, 50], 0, 15],
    [[15, 20, 35, 40, 50], 0.05, 16],
    [[15, 20, 35, 40, 50], 0.3, 23],
    [[15, 20, 35, 40, 50], 0.4, 29],
    [[15, 20, 35, 40, 50], 0.95, 48],
    [[15, 20, 35, 40, 50], 1, 50],
    [[-2, 0.5, 3.1, 7, 8, 8, 12.25], 0.1, -0.5],
    [[-2, 0.5, 3.1, 7, 8, 8, 12.25], 0.25, 1.8],
    [[-2, 0.5, 3.1, 7, 8, 8, 12.25], 0.5, 7],
    [[-2, 0.5, 3.1, 7, 8, 8, 12.25], 0.99, 11.995],
  ])('of %j at %d are NumPy’s', (values, share, expected) => {
    expect(percentile(values, share)).toBeCloseTo(expected, 12);
  });

  it('do not exist without data and outside 0..1', () => {
    expect(percentile([], 0.5)).toBeNull();
    expect(() => percentile([1], 95)).toThrow('expected a share in 0..1, found 95');
  });

  it('name their method', () => {
    expect(percentileMethod).toContain('type 7');
  });
});

describe('a distribution', () => {
  it('describes one population, sorted as numbers', () => {
    const values = [10, 9, 100, 1, 30];
    expect(describeDistribution(values)).toEqual({ n: 5, mean: 30, p50: 10, p95: expect.closeTo(86, 12) });
    expect(values).toEqual([10, 9, 100, 1, 30]);
  });

  it('of nothing has no figures', () => {
    expect(describeDistribution([])).toEqual({ n: 0, mean: null, p50: null, p95: null });
    expect(mean([])).toBeNull();
  });
});
