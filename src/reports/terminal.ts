// The summary as text for a terminal: success, selection, confusion, latency and work, colours only when asked for.
import Table, { type CellValue, type HorizontalAlignment } from 'cli-table3';
import type { Rate } from '../evaluation/statistics.js';
import { safeText } from './safe-text.js';
import type { SelectionSummary } from './selection.js';
import type { Summary } from './summary.js';

export interface RenderOptions {
  readonly colours?: boolean;
}

type Render = (columns: readonly string[], rows: readonly (readonly string[])[]) => string;

/** Blocks of tables and lines, each figure with its n; without a final newline. */
export function renderSummary(summary: Summary, { colours = false }: RenderOptions = {}): string {
  const render: Render = (columns, rows) => renderTable(columns, rows, colours);
  return [
    successBlock(summary, render),
    errorBlock(summary),
    selectionBlock(summary.selection, render),
    confusionBlock(summary.selection, render),
    latencyBlock(summary, render),
    workBlock(summary),
  ]
    .filter((block) => block !== '')
    .join('\n\n');
}

function successBlock({ success, questions, stops }: Summary, render: Render): string {
  const unscored = Object.entries(questions.unscored).filter(([, count]) => count > 0);
  const row = (type: string, rate: Rate, missing: number): string[] => [
    type,
    String(rate.successes),
    String(rate.n),
    percent(rate.rate),
    rate.interval === null ? '–' : `${percent(rate.interval.low)} – ${percent(rate.interval.high)}`,
    missing === 0 ? '' : String(missing),
  ];
  const types = Object.entries(success.byType).map(([type, rate]) => row(type, rate, rate.unscored));
  const missing = unscored.reduce((sum, [, count]) => sum + count, 0);
  const notRun = questions.notRun === 0 ? '' : ` · ${questions.notRun} not run`;
  return [
    render(['type', 'correct', 'n', 'success', '95% interval', 'no verdict'], [...types, row('all', success.overall, missing)]),
    `Planned ${questions.planned} · scored ${questions.scored}${unscored.map(([kind, count]) => ` · ${count} ${kind}`).join('')}${notRun}`,
    `Stops: ${
      Object.entries(stops)
        .map(([status, count]) => `${status} ${count}`)
        .join(' · ') || 'none'
    }`,
  ].join('\n');
}

/** The most frequent ways of failing, so that nobody has to search the records for them. */
function errorBlock({ errors }: Summary): string {
  if (errors.length === 0) return '';
  const lines = errors.slice(0, 5).map(({ kind, message, firstId, questions }) => {
    return `  ${questions} × ${kind} (first: ${safeText(firstId)}): ${safeText(message)}`;
  });
  const rest = errors.length > 5 ? [`  and ${errors.length - 5} more in summary.json`] : [];
  return ['Errors', ...lines, ...rest].join('\n');
}

function selectionBlock({ candidates, turns, margin, actionAgreement, expected }: SelectionSummary, render: Render): string {
  if (turns === 0) return '';
  const rows = candidates.map(({ candidate, turns: count, share }, i) => [String(i), candidate, String(count), percent(share)]);
  const lines = [
    `Margin best to second: mean ${decimal(margin.mean, 3)} nats, p50 ${decimal(margin.p50, 3)} (n = ${margin.n} turns)`,
  ];
  lines.push(`Action agreement: ${percent(actionAgreement.share)} (${actionAgreement.turns} of ${actionAgreement.n} turns)`);
  if (expected.n > 0) {
    lines.push(`Chosen as expected: ${percent(expected.share)} (${expected.turns} of ${expected.n} turns on the reference path)`);
  }
  return [render(['', 'candidate', 'turns', 'share'], rows), ...lines].join('\n');
}

/** Expected candidates down, chosen ones across, by their place in the library; nothing where no turn has an expectation. */
function confusionBlock({ candidates, expected }: SelectionSummary, render: Render): string {
  if (expected.n === 0) return '';
  const ids = candidates.map(({ candidate }) => candidate);
  const rows = Object.entries(expected.confusion).map(([wanted, row]) => [
    wanted,
    ...ids.map((id) => (row[id] ? String(row[id]) : '·')),
  ]);
  return render(['expected ↓ chosen →', ...ids.map((_, i) => String(i))], rows);
}

function latencyBlock({ latency, throughput, selection }: Summary, render: Render): string {
  const scopes = [['turn', latency.perTurn] as const, ['question', latency.perQuestion] as const];
  const rows = scopes.flatMap(([scope, phases]) =>
    Object.entries(phases)
      // A phase that took no time at all did not occur.
      .filter(([, { mean }]) => mean !== 0)
      .map(([phase, { n, mean, p50, p95 }]) => [
        `${phase} per ${phase === 'tool' && scope === 'turn' ? 'call' : scope}`,
        ...[mean, p50, p95].map((value) => decimal(value, 1)),
        String(n),
      ]),
  );
  const counted = selection.turns > 0 ? 'scored tokens/s (all candidates)' : 'generated tokens/s';
  return [
    render(['latency in ms', 'mean', 'p50', 'p95', 'n'], rows),
    `Percentiles: ${latency.percentiles}`,
    `Reasoning: ${decimal(throughput.scoredTokensPerSecond, 0)} ${counted}, ` +
      `${decimal(throughput.insertedTokensPerSecond, 0)} inserted tokens/s`,
  ].join('\n');
}

function workBlock({ work }: Summary): string {
  if (work.ratio === null) return '';
  return (
    `Work: ${work.computedTokens} tokens computed, ${work.ratio.toFixed(3)} of the floor of ${work.floorTokens}; ` +
    `${work.cachedTokens} from the cache · ${work.generatedTokens} tokens generated · ${work.imagesEncoded} images encoded`
  );
}

function renderTable(columns: readonly string[], rows: readonly (readonly CellValue[])[], colours: boolean): string {
  const [first = 'left', ...rest] = columns.map((_, i): HorizontalAlignment => (isText(rows, i) ? 'left' : 'right'));
  // The library would colour by its own look at the environment; the caller has already decided.
  const heading = (text: string): string => (colours ? `\u001b[1m${text}\u001b[22m` : text);
  const style = { head: [], border: [], compact: true };
  const table = new Table({ head: columns.map(heading), colAligns: [first, ...rest], style });
  table.push(...rows.map((row) => row.map((cell) => (typeof cell === 'string' ? shortened(safeText(cell)) : cell))));
  return table.toString();
}

/** A name of thousands of letters must not make the table as wide. */
function shortened(text: string): string {
  return text.length > 60 ? `${text.slice(0, 59)}…` : text;
}

/** A column of names stands left, one of figures right. */
function isText(rows: readonly (readonly CellValue[])[], column: number): boolean {
  return rows.some((row) => /^\p{L}/u.test(String(row[column] ?? '')));
}

function percent(share: number | null): string {
  return share === null ? '–' : `${(100 * share).toFixed(1)}%`;
}

function decimal(value: number | null, decimals: number): string {
  return value === null ? '–' : value.toFixed(decimals);
}
