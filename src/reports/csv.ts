// success.csv and latency.csv: the summary's tables for spreadsheets, one header line, units in the names, empty where nothing is known.
import { stringify } from 'csv-stringify/sync';
import type { Summary } from './summary.js';

/** One row for all questions (`all`), then one per type; rates in 0..1. */
export function successCsv({ success, questions }: Summary): string {
  const unscored = Object.values(questions.unscored).reduce((sum, count) => sum + count, 0);
  const rows = [['all', { ...success.overall, unscored }] as const, ...Object.entries(success.byType)];
  return table(
    ['type', 'n', 'successes', 'success_rate', 'wilson95_low', 'wilson95_high', 'unscored'],
    rows.map(([type, { n, successes, rate, interval, unscored }]) => [
      type,
      n,
      successes,
      rounded(rate, 6),
      rounded(interval?.low ?? null, 6),
      rounded(interval?.high ?? null, 6),
      unscored,
    ]),
  );
}

/** One row per phase of a turn, then one per phase of a question, in milliseconds. */
export function latencyCsv({ latency }: Summary): string {
  const scopes = [['turn', latency.perTurn] as const, ['question', latency.perQuestion] as const];
  return table(
    ['per', 'phase', 'n', 'mean_ms', 'p50_ms', 'p95_ms'],
    scopes.flatMap(([scope, phases]) =>
      Object.entries(phases).map(([phase, { n, mean, p50, p95 }]) => [
        scope,
        phase,
        n,
        rounded(mean, 3),
        rounded(p50, 3),
        rounded(p95, 3),
      ]),
    ),
  );
}

function table(columns: string[], rows: (string | number | null)[][]): string {
  return stringify([columns, ...rows], { record_delimiter: 'unix' });
}

function rounded(value: number | null, decimals: number): number | null {
  return value === null ? null : Number(value.toFixed(decimals));
}
