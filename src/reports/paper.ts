// Published success rates beside a table of our own: which lie outside our intervals, and which are no share of whole questions.
import { DataError, UsageError } from '../errors.js';
import type { Interval } from '../evaluation/statistics.js';
import type { SuccessTable, TableRow } from './table.js';

/** A row of results/paper/success.csv. */
export interface PublishedRow {
  readonly model: string;
  readonly size: string;
  /** Percent by benchmark. */
  readonly rates: ReadonlyMap<string, number>;
  readonly average: number;
}

export interface PublishedCell {
  readonly percent: number;
  /** Right answers that give this percentage of n; null where no whole number does, as for a mean over runs. */
  readonly count: number | null;
  readonly n: number | null;
  /** Whether our 95% interval misses it; null without an interval. */
  readonly outside: boolean | null;
}

export interface PaperComparison {
  /** Benchmarks of both, in the table's order. */
  readonly benchmarks: readonly string[];
  readonly rows: readonly {
    readonly model: string;
    readonly size: string;
    readonly cells: readonly PublishedCell[];
    /** Null unless the table has all published benchmarks. */
    readonly average: { readonly percent: number; readonly outside: boolean | null } | null;
  }[];
}

/** Half of the last printed digit, in percentage points. */
const rounding = 0.005 + 1e-9;
const z95 = 1.959963984540054;

/** Whole k with 100 k / n = percent as printed with two decimals, or null. */
export function countBehind(percent: number, n: number): number | null {
  const k = Math.round((percent * n) / 100);
  return Math.abs((100 * k) / n - percent) <= rounding ? k : null;
}

/** Throws DataError for a file of another form. */
export function parsePublished(text: string, where: string): PublishedRow[] {
  const [header = [], ...lines] = text
    .trim()
    .split(/\r?\n/)
    .map((line) => line.split(','));
  const benchmarks = header.slice(2, header.indexOf('average'));
  if (header[0] !== 'model' || header[1] !== 'size' || benchmarks.length === 0 || text.includes('"')) {
    throw new DataError('not a table of published rates', {
      where,
      expected: 'model,size,<benchmarks>,average,note without quotes',
    });
  }
  return lines.map((cells, i) => {
    const [model = '', size = '', ...figures] = cells;
    const numbers = figures.slice(0, benchmarks.length + 1).map(Number);
    if (cells.length !== header.length || numbers.some((value) => !Number.isFinite(value))) {
      throw new DataError('not a row of published rates', { where: `${where}:${i + 2}`, found: cells.join(',') });
    }
    const rates = new Map(benchmarks.map((name, column) => [name, numbers[column] as number]));
    return { model, size, rates, average: numbers.at(-1) as number };
  });
}

/** `sizes` holds the published number of questions per benchmark. Throws DataError when no benchmark is in both, UsageError when one is there twice. */
export function againstPaper(
  { rows, macro }: SuccessTable,
  published: readonly PublishedRow[],
  sizes: ReadonlyMap<string, number>,
): PaperComparison {
  const known = published[0]?.rates ?? new Map<string, number>();
  const shared = rows.filter(({ benchmark }) => known.has(benchmark));
  if (shared.length === 0) {
    throw new DataError('nothing of these runs is published', {
      expected: `a run on one of ${[...known.keys()].join(', ')}`,
      found: rows.map(({ benchmark }) => benchmark).join(', '),
    });
  }
  const names = shared.map(({ benchmark }) => benchmark);
  const double = names.find((name, i) => names.indexOf(name) !== i);
  if (double !== undefined) {
    throw new UsageError('a benchmark occurs in runs of different settings', {
      found: double,
      remedy: 'Set one system beside the published ones at a time.',
    });
  }
  const whole = shared.length === rows.length && shared.length === known.size && macro !== null;
  return {
    benchmarks: names,
    rows: published.map(({ model, size, rates, average }) => ({
      model,
      size,
      cells: shared.map((row) => cellOf(rates.get(row.benchmark) as number, row, sizes)),
      average: whole ? { percent: average, outside: outside(average, macroInterval(macro)) } : null,
    })),
  };
}

function cellOf(percent: number, { benchmark, interval }: TableRow, sizes: ReadonlyMap<string, number>): PublishedCell {
  const n = sizes.get(benchmark) ?? null;
  return { percent, n, count: n === null ? null : countBehind(percent, n), outside: outside(percent, interval) };
}

function macroInterval({ completeCase: { mean, standardError } }: NonNullable<SuccessTable['macro']>): Interval | null {
  if (mean === null || standardError === null) return null;
  return { low: mean - z95 * standardError, high: mean + z95 * standardError };
}

function outside(percent: number, interval: Interval | null): boolean | null {
  return interval === null ? null : percent < 100 * interval.low || percent > 100 * interval.high;
}
