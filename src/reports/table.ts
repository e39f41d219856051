// The success table: per benchmark k of n with its interval and a ledger that sums to the plan, over one run or its repeats.
//   complete case:   p = right / questions with a verdict
//   errors as wrong: p = right / planned questions that have a gold answer
import type { Episode } from '../evaluation/records.js';
import { type Interval, type Rate, rate } from '../evaluation/statistics.js';
import { type MacroAverage, macroAverage } from './macro.js';
import { type Repeats, repeatsOf } from './repeats.js';
import { createSuccess, type Ledger } from './success.js';

/** One run, read from its records. */
export interface RunResult {
  readonly folder: string;
  readonly benchmark: string;
  /** Equal for runs that differ in their seed alone: repeats of each other. */
  readonly system: string;
  /** Questions that the benchmark has as published; null where nobody says. */
  readonly publishedQuestions: number | null;
  readonly ledger: Ledger;
  readonly completeCase: Rate;
  readonly errorsAsWrong: Rate;
  /** Questions of the plan without a record. */
  readonly missing: readonly string[];
  /** Ids that have two records, or none in the plan: no table can be made of them. */
  readonly foreign: readonly string[];
  /** Lines that a crash tore, or that are no records. */
  readonly unreadable: number;
  /** What summary.json says where the records say otherwise. */
  readonly staleSummary: string | null;
  readonly verdicts: ReadonlyMap<string, boolean | null>;
}

export interface RunFacts extends Pick<RunResult, 'folder' | 'benchmark' | 'system' | 'publishedQuestions'> {
  readonly plan: readonly string[];
  /** Right and scored, as summary.json has it; null without the file. */
  readonly summary: { readonly successes: number; readonly n: number } | null;
}

export interface TableRow {
  readonly benchmark: string;
  readonly runs: readonly RunResult[];
  /** Mean over the runs; of the questions that have a verdict. */
  readonly success: number | null;
  readonly standardError: number | null;
  /** Wilson's for one run; over questions for repeats. */
  readonly interval: Interval | null;
  readonly errorsAsWrong: number | null;
  /** Null for one run. */
  readonly repeats: Repeats | null;
}

export interface SuccessTable {
  readonly schema: 1;
  readonly rows: readonly TableRow[];
  /** Null for one benchmark, or where one occurs twice. */
  readonly macro: { readonly completeCase: MacroAverage; readonly errorsAsWrong: MacroAverage } | null;
  /** One line per reason to trust the figures less. */
  readonly warnings: readonly string[];
}

/** Sees the records of one run, one at a time. */
export function createRunResult(facts: RunFacts) {
  const { plan, summary, ...named } = facts;
  const planned = new Set(plan);
  const success = createSuccess(plan.length);
  const verdicts = new Map<string, boolean | null>();
  const foreign: string[] = [];
  let unreadable = 0;
  return {
    addUnreadable(): void {
      unreadable++;
    },
    add(episode: Episode): void {
      if (verdicts.has(episode.id) || !planned.has(episode.id)) {
        foreign.push(episode.id);
        return;
      }
      verdicts.set(episode.id, episode.correct);
      success.add(episode);
    },
    result(): RunResult {
      const ledger = success.ledger();
      const { overall } = success.success();
      const stale = summary !== null && (summary.successes !== overall.successes || summary.n !== overall.n);
      return {
        ...named,
        ledger,
        completeCase: overall,
        errorsAsWrong: rate(overall.successes, ledger.planned - ledger.unscored['no-gold']),
        missing: plan.filter((id) => !verdicts.has(id)),
        foreign,
        unreadable,
        staleSummary: stale ? `${summary.successes}/${summary.n}` : null,
        verdicts,
      };
    },
  };
}

/** Rows in the order of `order`, then of the runs; runs of one system on one benchmark share a row. */
export function successTable(runs: readonly RunResult[], order: readonly string[]): SuccessTable {
  const groups = new Map<string, RunResult[]>();
  for (const run of runs) {
    const key = JSON.stringify([run.benchmark, run.system]);
    groups.set(key, [...(groups.get(key) ?? []), run]);
  }
  const place = (benchmark: string): number => (order.includes(benchmark) ? order.indexOf(benchmark) : order.length);
  const rows = [...groups.values()].map(rowOf).sort((a, b) => place(a.benchmark) - place(b.benchmark));
  return {
    schema: 1,
    rows,
    macro: macroOf(rows),
    warnings: [...rows.flatMap((row) => row.runs.flatMap(warningsOf)), ...doubles(rows)],
  };
}

function rowOf(runs: readonly RunResult[]): TableRow {
  const [first] = runs as readonly [RunResult];
  const common = { benchmark: first.benchmark, runs };
  if (runs.length === 1) {
    const { completeCase, errorsAsWrong } = first;
    return {
      ...common,
      success: completeCase.rate,
      standardError: standardError(completeCase),
      interval: completeCase.interval,
      errorsAsWrong: errorsAsWrong.rate,
      repeats: null,
    };
  }
  const repeats = repeatsOf(runs.map(({ verdicts }) => verdicts));
  const asWrong = runs.flatMap(({ errorsAsWrong }) => errorsAsWrong.rate ?? []);
  return {
    ...common,
    success: repeats.mean,
    standardError: repeats.standardError,
    interval: repeats.interval,
    errorsAsWrong: asWrong.length === runs.length ? asWrong.reduce((sum, value) => sum + value, 0) / asWrong.length : null,
    repeats,
  };
}

/** sqrt(p (1 - p) / n), of a rate over questions that are drawn one by one. */
function standardError({ rate: p, n }: Rate): number | null {
  return p === null ? null : Math.sqrt((p * (1 - p)) / n);
}

function macroOf(rows: readonly TableRow[]): SuccessTable['macro'] {
  const names = new Set(rows.map(({ benchmark }) => benchmark));
  if (names.size < 2 || names.size < rows.length) return null;
  const asWrong = rows.map((row) => ({
    rate: row.errorsAsWrong,
    standardError: row.repeats ? row.standardError : standardError((row.runs[0] as RunResult).errorsAsWrong),
  }));
  return {
    completeCase: macroAverage(rows.map(({ success, standardError: error }) => ({ rate: success, standardError: error }))),
    errorsAsWrong: macroAverage(asWrong),
  };
}

function warningsOf(run: RunResult): string[] {
  const { benchmark, folder, ledger, missing, foreign, unreadable, staleSummary, publishedQuestions } = run;
  const where = `${benchmark} (${folder})`;
  const listed = (ids: readonly string[]): string => `${ids.slice(0, 10).join(', ')}${ids.length > 10 ? ', …' : ''}`;
  const errors = ledger.planned - ledger.scored - ledger.unscored['no-gold'] - ledger.notRun;
  return [
    ...(missing.length > 0
      ? [`${where}: ${missing.length} of ${ledger.planned} planned questions have no record: ${listed(missing)}`]
      : []),
    ...(foreign.length > 0
      ? [`${where}: ${foreign.length} records left out, repeated or not in the plan: ${listed(foreign)}`]
      : []),
    ...(unreadable > 0 ? [`${where}: ${unreadable} lines of episodes.jsonl cannot be read; resuming the run mends it`] : []),
    ...(errors > 0
      ? [`${where}: ${errors} of ${ledger.planned} questions ended in an error, which counts under "errors as wrong" only`]
      : []),
    ...(staleSummary !== null ? [`${where}: summary.json says ${staleSummary}, the records say otherwise and count`] : []),
    ...(publishedQuestions !== null && publishedQuestions !== ledger.planned
      ? [`${where}: ${ledger.planned} questions, of ${publishedQuestions} published; not comparable with published figures`]
      : []),
  ];
}

function doubles(rows: readonly TableRow[]): string[] {
  const names = rows.map(({ benchmark }) => benchmark);
  const double = names.find((name, i) => names.indexOf(name) !== i);
  if (double === undefined) return [];
  return [`${double} occurs in runs of different settings, so there is no average; ssr compare sets runs against each other`];
}
