// A comparison as tables of text: the paper's two layouts (success per benchmark, profile) and the paired tests.
import type { Interval } from '../evaluation/statistics.js';
import type { ArmComparison, BenchmarkComparison, Comparison } from './compare.js';
import type { LatencyComparison, LatencyFigure } from './compare-latency.js';

export interface TextTable {
  readonly title: string;
  readonly columns: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

const NONE = '–';

export function comparisonTables(comparison: Comparison): TextTable[] {
  return [
    successTable(comparison),
    profileTable(comparison),
    ...comparison.comparisons.flatMap((arms) => [pairedSuccessTable(arms), pairedLatencyTable(arms)]),
  ];
}

/** Success in percent, as published: one row per arm, one column per benchmark, then the average. */
export function successTable({ arms }: Comparison): TextTable {
  const benchmarks = arms[0]?.benchmarks.map(({ benchmark }) => benchmark) ?? [];
  const several = benchmarks.length > 1;
  return {
    title: 'Success (%)',
    columns: ['method', ...benchmarks, ...(several ? ['average'] : []), 'n'],
    rows: arms.map((arm) => [
      arm.name,
      ...benchmarks.map((name) => points(arm.benchmarks.find(({ benchmark }) => benchmark === name)?.success.rate ?? null)),
      ...(several ? [points(arm.average)] : []),
      arm.benchmarks.map(({ success }) => success.n).join(' + '),
    ]),
  };
}

/** Latencies in seconds and throughput, as published, with the inserted tokens per second beside it. */
export function profileTable({ arms }: Comparison): TextTable {
  return {
    title: 'Latency (s) and throughput (tokens/s)',
    columns: ['method', 'success %', 'reasoning mean', 'reasoning p95', 'model mean', 'model p95', 'tokens/s', 'inserted/s'],
    rows: arms.map((arm) => [
      arm.name,
      points(arm.average),
      seconds(arm.reasoningPerTurn.mean),
      seconds(arm.reasoningPerTurn.p95),
      seconds(arm.modelPerQuestion.mean),
      seconds(arm.modelPerQuestion.p95),
      decimal(arm.tokensPerSecond, 1),
      decimal(arm.insertedTokensPerSecond, 1),
    ]),
  };
}

export function pairedSuccessTable({ reference, arm, benchmarks, macro }: ArmComparison): TextTable {
  const rows = benchmarks.map(({ benchmark, success }) => [
    benchmark,
    String(success.n),
    points(success.reference.rate),
    points(success.arm.rate),
    signed(success.difference, 100, 1),
    interval(success.interval, 100, 1),
    `${success.pairs.onlyFirst} / ${success.pairs.onlySecond}`,
    pValue(success.p),
    pValue(success.pHolm),
    success.verdict ?? NONE,
  ]);
  const all = macro && [
    'macro average',
    '',
    '',
    '',
    signed(macro.difference, 100, 1),
    interval(macro.interval, 100, 1),
    '',
    '',
    '',
    macro.verdict ?? NONE,
  ];
  return {
    title: `Success of ${arm} against ${reference} (points, paired)`,
    columns: [
      'benchmark',
      'n',
      reference,
      arm,
      'difference',
      '95% interval',
      `only ${reference} / only ${arm}`,
      'McNemar p',
      'Holm p',
      'no worse',
    ],
    rows: all ? [...rows, all] : rows,
  };
}

export function pairedLatencyTable({ reference, arm, benchmarks }: ArmComparison): TextTable {
  const several = benchmarks.length > 1;
  return {
    title: `Latency of ${arm} against ${reference} (ms, paired)`,
    columns: ['latency', 'figure', reference, arm, 'difference', '95% interval', 'change', '95% interval', 'n'],
    rows: benchmarks.flatMap(({ benchmark, reasoning, model }) => [
      ...latencyRows(`${several ? `${benchmark}: ` : ''}reasoning per turn`, reasoning),
      ...latencyRows(`${several ? `${benchmark}: ` : ''}model per question`, model),
    ]),
  };
}

function latencyRows(name: string, latency: LatencyComparison): string[][] {
  const figures: [string, LatencyFigure | null][] = [
    ['mean', latency.mean],
    ['p50', latency.p50],
    ['p95', latency.p95],
  ];
  return figures.map(([figure, value]) => [
    name,
    figure,
    decimal(value?.referenceMs ?? null, 1),
    decimal(value?.armMs ?? null, 1),
    signed(value?.differenceMs ?? null, 1, 1),
    interval(value?.differenceInterval ?? null, 1, 1),
    changeText(value),
    interval(value?.changeInterval ?? null, 100, 1),
    `${latency.n.reference} / ${latency.n.arm}`,
  ]);
}

/** The verdicts in words, one line per arm and benchmark. */
export function verdictLines({ comparisons, margin }: Comparison): string[] {
  return comparisons.flatMap(({ arm, benchmarks, macro }) => {
    const lines = benchmarks.map((comparison) => `${arm} on ${comparison.benchmark}: ${verdictLine(comparison, margin)}`);
    if (!macro) return lines;
    const figure = `${signed(macro.difference, 100, 1)} ${interval(macro.interval, 100, 1)}`;
    return [...lines, `${arm}, macro average: success within ${points(margin)} points: ${macro.verdict ?? 'unknown'}, ${figure}`];
  });
}

function verdictLine({ success, reasoning }: BenchmarkComparison, margin: number): string {
  const mean = reasoning.mean;
  const latency = mean ? `${changeText(mean)} ${interval(mean.changeInterval, 100, 1)}` : 'unknown';
  return (
    `success within ${points(margin, 0)} points: ${success.verdict ?? 'unknown'}, ` +
    `${signed(success.difference, 100, 1)} ${interval(success.interval, 100, 1)}; reasoning latency ${latency}`
  );
}

function changeText(figure: LatencyFigure | null): string {
  return figure?.change == null ? NONE : `${signed(figure.change, 100, 1)}%`;
}

function points(share: number | null, decimals = 2): string {
  return decimal(share === null ? null : 100 * share, decimals);
}

function seconds(ms: number | null): string {
  return decimal(ms === null ? null : ms / 1000, 3);
}

function pValue(p: number | null): string {
  if (p === null) return NONE;
  return p < 0.0001 ? '< 0.0001' : p.toFixed(4);
}

function signed(value: number | null, scale: number, decimals: number): string {
  if (value === null) return NONE;
  const text = (scale * value).toFixed(decimals);
  // A rounded nothing has no sign.
  if (Number(text) === 0) return (0).toFixed(decimals);
  return text.startsWith('-') ? text : `+${text}`;
}

function interval(bounds: Interval | null, scale: number, decimals: number): string {
  if (bounds === null) return NONE;
  return `[${(scale * bounds.low).toFixed(decimals)}, ${(scale * bounds.high).toFixed(decimals)}]`;
}

function decimal(value: number | null, decimals: number): string {
  return value === null ? NONE : value.toFixed(decimals);
}
