import { describe, expect, it } from 'vitest';
import { bootstrapInterval, everyQuestion } from '../../src/evaluation/bootstrap.js';
import { agreementBound, binomialCdf, countPairs, holm, mcNemarP, nonInferior } from '../../src/evaluation/paired.js';
import { breakEven, fitLinear } from '../../src/evaluation/profile-linear.js';
import { profileOf, quantileBounds } from '../../src/evaluation/profile-quantiles.js';
import { createRandom, deriveSeed } from '../../src/random.js';

describe('the exact McNemar test', () => {
  // scipy.stats.binomtest(b, b + c, 0.5).pvalue of SciPy 1.17.1
  it.each([
    [0, 0, 1],
    [1, 0, 1],
    [3, 1, 0.625],
    [5, 14, 0.063568115234375],
    [12, 12, 1],
    [30, 60, 0.0020602656809630745],
    [0, 9, 0.00390625],
    [141, 203, 0.00097789517806175],
    [700, 800, 0.010559255466711506],
  ])('with %d and %d discordant pairs is SciPy’s', (onlyFirst, onlySecond, p) => {
    expect(mcNemarP({ onlyFirst, onlySecond })).toBeCloseTo(p, 12);
    expect(mcNemarP({ onlyFirst: onlySecond, onlySecond: onlyFirst })).toBeCloseTo(p, 12);
  });

  it('counts pairs by both verdicts', () => {
    const counts = countPairs([
      [true, true],
      [true, false],
      [true, false],
      [false, true],
      [false, false],
    ]);
    expect(counts).toEqual({ both: 1, onlyFirst: 2, onlySecond: 1, neither: 1 });
  });
});

describe('Holm’s adjustment', () => {
  // statsmodels.stats.multitest.multipletests(p, method='holm') of statsmodels 0.15.0
  it.each([
    [
      [0.01, 0.04, 0.03],
      [0.03, 0.06, 0.06],
    ],
    [
      [0.001, 0.2, 0.05, 0.04],
      [0.004, 0.2, 0.12, 0.12],
    ],
    [
      [0.5, 0.5],
      [1, 1],
    ],
    [
      [0.02, 0.01, 0.03, 0.04, 0.9],
      [0.08, 0.05, 0.09, 0.09, 0.9],
    ],
    [[], []],
  ])('of %j is statsmodels’', (pValues, adjusted) => {
    expect(holm(pValues)).toEqual(adjusted.map((p) => expect.closeTo(p, 12)));
  });
});

describe('the verdict of non-inferiority', () => {
  it.each([
    [-0.019, 0.011, 'yes'],
    [-0.021, 0.011, 'undecided'],
    [-0.05, -0.021, 'no'],
    [-0.02, 0.01, 'undecided'],
  ] as const)('with an interval from %d to %d and a margin of 0.02 is %s', (low, high, verdict) => {
    expect(nonInferior({ low, high }, 0.02)).toBe(verdict);
  });

  it('is not claimed from a handful of questions that agree', () => {
    // 1 - 0.025^(1/n) by hand
    expect(agreementBound(400)).toBeCloseTo(0.0091797, 6);
    expect(agreementBound(10)).toBeCloseTo(0.3084971, 6);
  });
});

describe('bounds of a percentile', () => {
  // scipy.stats.quantile_test(1..n, p=share).confidence_interval(0.95) of SciPy 1.17.1; null is its nan
  it.each([
    [100, 0.95, 90, 100],
    [100, 0.99, 97, null],
    [100, 0.5, 40, 61],
    [71, 0.95, 63, null],
    [72, 0.95, 64, 72],
    [20, 0.5, 6, 15],
    [5, 0.5, null, null],
    [6, 0.5, 1, 6],
    [400, 0.95, 371, 389],
    [400, 0.99, 392, 400],
    [1000, 0.99, 983, 997],
    [367, 0.99, 359, null],
  ])('for n = %d at %d are SciPy’s', (n, share, low, high) => {
    const sorted = Float64Array.from({ length: n }, (_, i) => i + 1);
    expect(quantileBounds(sorted, share)).toEqual({ low, high });
  });

  it('stand beside the percentile, and do not exist without data', () => {
    const profile = profileOf(Array.from({ length: 20 }, (_, i) => 20 - i));
    expect(profile).toMatchObject({ n: 20, mean: 10.5, p50: { value: 10.5, low: 6, high: 15 }, p99: { high: null } });
    expect(profileOf([]).p95).toEqual({ value: null, low: null, high: null });
  });

  it('come from a binomial that keeps its precision', () => {
    expect(binomialCdf(3, 10, 0.3)).toBeCloseTo(0.6496107184, 10);
    expect(binomialCdf(4990, 10_000, 0.5)).toBeCloseTo(0.4247, 3);
  });
});

describe('a linear fit', () => {
  it('is that of SciPy and statsmodels', () => {
    const line = fitLinear([[1], [2], [3], [4], [5], [7]], [2.1, 3.9, 6.2, 8.1, 9.8, 14.3]);
    expect(line?.slopes[0]).toBeCloseTo(2.022857142857143, 12);
    expect(line?.intercept).toBeCloseTo(-0.01714285714285868, 12);
    expect(line?.r2).toBeCloseTo(0.9991571999614521 ** 2, 12);
    const plane = fitLinear(
      [
        [0, 1],
        [1, 0],
        [2, 3],
        [3, 1],
        [5, 2],
      ],
      [1, 2.5, 4, 6, 9.5],
    );
    expect([plane?.intercept, ...(plane?.slopes ?? [])]).toEqual([0.9, 1.7375, -0.0875].map((x) => expect.closeTo(x, 12)));
    expect(plane?.r2).toBeCloseTo(0.9982837528604119, 12);
  });

  it('does not exist where the points do not determine it', () => {
    expect(fitLinear([[1], [1], [1]], [1, 2, 3])).toBeNull();
    expect(
      fitLinear(
        [
          [1, 2],
          [2, 4],
          [3, 6],
        ],
        [1, 2, 3],
      ),
    ).toBeNull();
    expect(fitLinear([[1]], [1])).toBeNull();
  });

  it('tells where two costs are equal', () => {
    expect(breakEven(60, 10, 12.5)).toBe(4);
    expect(breakEven(60, 10, 0)).toBeNull();
  });
});

describe('the bootstrap interval', () => {
  const SIMULATIONS = 2000;
  /** Share of simulations whose interval holds the truth. */
  function coverage(
    truth: number,
    simulate: (random: () => number, seed: number) => { low: number; high: number } | null,
  ): number {
    let covered = 0;
    for (let i = 0; i < SIMULATIONS; i++) {
      const interval = simulate(createRandom(deriveSeed(1, String(i))), i);
      if (interval !== null && interval.low <= truth && truth <= interval.high) covered++;
    }
    return covered / SIMULATIONS;
  }
  const normal = (random: () => number): number => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  const averageOf = (values: ArrayLike<number>, draw: Int32Array): number => {
    let sum = 0;
    for (const i of draw) sum += values[i]!;
    return sum / draw.length;
  };

  it('of a success difference covers the truth in 93 to 97% of 2,000 simulations', () => {
    // First arm right with 0.7, second with 0.6, independent given a question: truth +0.1.
    const share = coverage(0.1, (random, seed) => {
      const differences = Array.from({ length: 120 }, () => Number(random() < 0.7) - Number(random() < 0.6));
      return bootstrapInterval([120], ([draw]) => averageOf(differences, draw!), { seed, resamples: 500 });
    });
    expect(share).toBeGreaterThanOrEqual(0.93);
    expect(share).toBeLessThanOrEqual(0.97);
  });

  it('of a latency ratio covers the truth in 93 to 97% of 2,000 simulations', () => {
    // Log-normal latencies that share the question's difficulty; the ratio of the means is exp(-1).
    const share = coverage(Math.exp(-1), (random, seed) => {
      const pairs = Array.from({ length: 120 }, () => {
        const difficulty = 0.3 * normal(random);
        return [Math.exp(difficulty + 0.2 * normal(random) - 1), Math.exp(difficulty + 0.2 * normal(random))] as const;
      });
      const [first, second] = [pairs.map(([a]) => a), pairs.map(([, b]) => b)];
      const ratio = ([draw]: readonly Int32Array[]): number => averageOf(first, draw!) / averageOf(second, draw!);
      return bootstrapInterval([120], ratio, { seed, resamples: 500 });
    });
    expect(share).toBeGreaterThanOrEqual(0.93);
    expect(share).toBeLessThanOrEqual(0.97);
  });

  it('between order statistics covers the median in 93 to 97% of 2,000 simulations', () => {
    const share = coverage(1, (random) => {
      const sorted = Float64Array.from({ length: 101 }, () => Math.exp(normal(random))).sort();
      return quantileBounds(sorted, 0.5) as { low: number; high: number };
    });
    expect(share).toBeGreaterThanOrEqual(0.93);
    expect(share).toBeLessThanOrEqual(0.97);
  });

  it('draws whole questions, each benchmark by itself, and repeats itself with its seed', () => {
    const sizes = new Set<string>();
    const statistic = (draws: readonly Int32Array[]): number => {
      sizes.add(draws.map((draw) => draw.length).join());
      return draws[0]![0]! - draws[1]![0]!;
    };
    const first = bootstrapInterval([3, 50], statistic, { seed: 7, resamples: 200 });
    expect(bootstrapInterval([3, 50], statistic, { seed: 7, resamples: 200 })).toEqual(first);
    expect(sizes).toEqual(new Set(['3,50']));
    expect(everyQuestion([2, 3])).toEqual([Int32Array.of(0, 1), Int32Array.of(0, 1, 2)]);
  });

  it('does not exist without questions or where a resample has no figure', () => {
    expect(bootstrapInterval([], () => 1, { seed: 1 })).toBeNull();
    expect(bootstrapInterval([5, 0], () => 1, { seed: 1 })).toBeNull();
    expect(bootstrapInterval([5], () => Number.NaN, { seed: 1 })).toBeNull();
  });
});
