// The success table as tables of text: for people, with marks and notes, and for programs, with one figure per cell.
import type { Interval } from '../evaluation/statistics.js';
import type { TextTable } from './compare-tables.js';
import { macroMethod } from './macro.js';
import type { PaperComparison, PublishedCell } from './paper.js';
import type { Unscored } from './success.js';
import type { RunResult, SuccessTable, TableRow } from './table.js';

const NONE = '–';
const KINDS: readonly Unscored[] = ['error', 'tool-error', 'cancelled', 'judge-error', 'no-gold'];

/** One line per run, repeats under each other; kinds of error that do not occur are left out. */
export function peopleTable({ rows, macro }: SuccessTable): TextTable {
  const runs = rows.flatMap((row) => row.runs);
  const kinds = KINDS.filter((kind) => runs.some(({ ledger }) => ledger.unscored[kind] > 0));
  const notRun = runs.some(({ ledger }) => ledger.notRun > 0);
  const padding = [...kinds, ...(notRun ? ['not run'] : [])].map(() => '');
  const line = (name: string, { completeCase, errorsAsWrong, ledger }: RunResult): string[] => [
    name,
    String(completeCase.successes),
    String(completeCase.n),
    points(completeCase.rate),
    interval(completeCase.interval),
    points(errorsAsWrong.rate),
    String(ledger.planned),
    ...kinds.map((kind) => String(ledger.unscored[kind])),
    ...(notRun ? [String(ledger.notRun)] : []),
  ];
  const body = rows.flatMap((row) =>
    row.repeats === null
      ? row.runs.map((run) => line(row.benchmark, run))
      : [
          ...row.runs.map((run, i) => line(`${row.benchmark}, try ${i + 1}`, run)),
          [
            `${row.benchmark}, mean`,
            '',
            '',
            points(row.success),
            interval(row.interval),
            points(row.errorsAsWrong),
            '',
            ...padding,
          ],
        ],
  );
  const average = macro && [
    'macro average',
    '',
    '',
    `${points(macro.completeCase.mean)} ± ${points(macro.completeCase.standardError)}`,
    '',
    `${points(macro.errorsAsWrong.mean)} ± ${points(macro.errorsAsWrong.standardError)}`,
    '',
    ...padding,
  ];
  return {
    title: 'Success',
    columns: [
      'benchmark',
      'right',
      'scored',
      'success %',
      '95% interval',
      'errors as wrong %',
      'planned',
      ...kinds,
      ...(notRun ? ['not run'] : []),
    ],
    rows: average ? [...body, average] : body,
  };
}

/** One line per run, then the average: shares in 0..1, counts, nothing rounded away. */
export function dataTable({ rows, macro }: SuccessTable): TextTable {
  const averages = macro
    ? ([
        ['complete_case', macro.completeCase],
        ['errors_as_wrong', macro.errorsAsWrong],
      ] as const)
    : [];
  return {
    title: 'success',
    columns: [
      ...['benchmark', 'run', 'successes', 'scored', 'success_rate', 'wilson95_low', 'wilson95_high', 'errors_as_wrong_rate'],
      ...['planned', ...KINDS, 'not_run', 'standard_error'],
    ],
    rows: [
      ...rows.flatMap(({ benchmark, runs }) => runs.map((run) => dataRow(benchmark, run))),
      ...averages.map(([name, { mean, standardError }]) => [
        ...['macro_average', name, '', '', share(mean), '', '', ''],
        ...['', ...KINDS.map(() => ''), '', share(standardError)],
      ]),
    ],
  };
}

function dataRow(benchmark: string, { folder, completeCase, errorsAsWrong, ledger }: RunResult): string[] {
  const { successes, n, rate, interval: bounds } = completeCase;
  return [
    ...[benchmark, folder, String(successes), String(n)],
    ...[share(rate), share(bounds?.low ?? null), share(bounds?.high ?? null), share(errorsAsWrong.rate)],
    ...[String(ledger.planned), ...KINDS.map((kind) => String(ledger.unscored[kind])), String(ledger.notRun)],
    rate === null ? '' : share(Math.sqrt((rate * (1 - rate)) / n)),
  ];
}

/** Null without repeats. */
export function repeatsTable({ rows }: SuccessTable): TextTable | null {
  const repeated = rows.filter((row) => row.repeats !== null);
  const tries = Math.max(0, ...repeated.map(({ repeats }) => repeats?.tries ?? 0));
  if (tries === 0) return null;
  return {
    title: 'Repeats: pass@k in %, and questions by how often they were right',
    columns: [
      ...['benchmark', 'tries', 'n'],
      ...Array.from({ length: tries }, (_, i) => `pass@${i + 1}`),
      ...Array.from({ length: tries + 1 }, (_, times) => `right ${times}x`),
    ],
    rows: repeated.map(({ benchmark, repeats }) => [
      ...[benchmark, String(repeats?.tries), String(repeats?.complete)],
      ...Array.from({ length: tries }, (_, i) => points(repeats?.passAtK[i] ?? null)),
      ...Array.from({ length: tries + 1 }, (_, times) => String(repeats?.rightTimes[times] ?? NONE)),
    ]),
  };
}

/** Our figures first, the published rows below, marked where they lie outside our interval or are no share of whole questions. */
export function paperTable({ rows, macro }: SuccessTable, comparison: PaperComparison): TextTable {
  const own = comparison.benchmarks.map((name) => rows.find(({ benchmark }) => benchmark === name) as TableRow);
  const average = comparison.rows[0]?.average != null;
  return {
    title: 'Success (%) beside the published figures',
    columns: ['method', ...comparison.benchmarks, ...(average ? ['average'] : [])],
    rows: [
      [
        'these runs',
        ...own.map(({ success }) => points(success)),
        ...(average ? [points(macro?.completeCase.mean ?? null)] : []),
      ],
      [
        '95% interval',
        ...own.map((row) => interval(row.interval)),
        ...(average ? [`± ${points(macro?.completeCase.standardError ?? null)}`] : []),
      ],
      ['n', ...own.map(({ runs }) => runs.map(({ completeCase }) => completeCase.n).join(' + ')), ...(average ? [''] : [])],
      ...comparison.rows.map(({ model, size, cells, average: mean }) => [
        `${model} ${size}`,
        ...cells.map(cellText),
        ...(mean === null ? [] : [`${mean.percent.toFixed(2)}${mean.outside ? '*' : ''}`]),
      ]),
    ],
  };
}

function cellText({ percent, count, n, outside }: PublishedCell): string {
  return `${percent.toFixed(2)}${outside ? '*' : ''}${n !== null && count === null ? '~' : ''}`;
}

/** One line per published cell. */
export function paperDataTable({ rows }: SuccessTable, comparison: PaperComparison): TextTable {
  return {
    title: 'paper',
    columns: [
      'model',
      'size',
      'benchmark',
      'published_pct',
      'published_count',
      'published_n',
      'run_pct',
      'run_scored',
      'outside',
    ],
    rows: comparison.rows.flatMap(({ model, size, cells }) =>
      cells.map(({ percent, count, n, outside }, i) => {
        const row = rows.find(({ benchmark }) => benchmark === comparison.benchmarks[i]) as TableRow;
        const scored = row.runs.map(({ completeCase }) => completeCase.n).join(' + ');
        const own = row.success === null ? '' : (100 * row.success).toFixed(2);
        return [
          model,
          size,
          row.benchmark,
          percent.toFixed(2),
          String(count ?? ''),
          String(n ?? ''),
          own,
          scored,
          String(outside ?? ''),
        ];
      }),
    ),
  };
}

/** What the figures mean and what is wrong with them. */
export function tableNotes({ rows, macro, warnings }: SuccessTable, comparison: PaperComparison | null): string[] {
  const repeated = rows.some(({ repeats }) => repeats !== null);
  return [
    `Success counts questions with a verdict; Wilson's 95% intervals${repeated ? ', for means of repeats the normal one over questions' : ''}.`,
    ...(macro ? [`Macro average: ${macroMethod}, m = ${macro.completeCase.m}.`] : []),
    ...(comparison
      ? ['* outside the interval of these runs · ~ no share of whole questions, so probably a mean of several runs']
      : []),
    ...warnings.map((warning) => `Note: ${warning}`),
  ];
}

function points(value: number | null): string {
  return value === null ? NONE : (100 * value).toFixed(2);
}

function share(value: number | null): string {
  return value === null ? '' : String(Number(value.toFixed(8)));
}

function interval(bounds: Interval | null): string {
  return bounds === null ? NONE : `${points(bounds.low)} – ${points(bounds.high)}`;
}
