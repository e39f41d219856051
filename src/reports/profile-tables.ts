// A profile as tables of text: phases with percentiles and their bounds, tokens, load, and how the cost grows.
import type { Profile, Quantile } from '../evaluation/profile-quantiles.js';
import type { Sweep } from '../evaluation/profile-sweep.js';
import { csvTable, latexTable, markdownTable, terminalTable } from './compare-formats.js';
import type { TextTable } from './compare-tables.js';
import { type LoadProfile, type ProfileReport, questionPhases, tokenCounts, turnPhases } from './profile.js';

export type ProfileFormat = 'terminal' | 'csv' | 'markdown' | 'latex' | 'json';

const NONE = '–';

export function renderProfile(report: ProfileReport, format: ProfileFormat): string {
  if (format === 'json') return `${JSON.stringify(report, null, 2)}\n`;
  const tables = profileTables(report);
  if (format === 'csv') return tables.map(csvTable).join('\n');
  if (format === 'latex') return `${tables.map(latexTable).join('\n\n')}\n`;
  const table = format === 'markdown' ? markdownTable : terminalTable;
  return `${[...tables.map(table), notes(report)].join('\n\n')}\n`;
}

function profileTables({ arm, loads, sweep, generations, calls }: ProfileReport): TextTable[] {
  const [first] = loads;
  return [
    ...(first ? [summaryTable(arm, first), phaseTable(first), tokenTable(first)] : []),
    generationTable(generations),
    ...(calls.length > 0 ? [callTable(calls)] : []),
    ...(loads.length > 1 ? [loadTable(loads)] : []),
    ...(sweep ? [selectionSweepTable(sweep), writingSweepTable(sweep)] : []),
  ];
}

/** The row of the paper's profile table. */
function summaryTable(
  arm: string,
  { success, perTurn, perQuestion, tokensPerSecond, insertedTokensPerSecond }: LoadProfile,
): TextTable {
  return {
    title: 'Profile (latency in s, throughput in tokens/s)',
    columns: ['method', 'success %', 'reasoning mean', 'reasoning p95', 'model mean', 'model p95', 'tokens/s', 'inserted/s', 'n'],
    rows: [
      [
        arm,
        decimal(success.rate === null ? null : 100 * success.rate, 2),
        seconds(perTurn.reasoning.mean),
        seconds(perTurn.reasoning.p95.value),
        seconds(perQuestion.model.mean),
        seconds(perQuestion.model.p95.value),
        decimal(tokensPerSecond, 1),
        decimal(insertedTokensPerSecond, 1),
        String(perQuestion.model.n),
      ],
    ],
  };
}

function phaseTable({ perTurn, perQuestion, load }: LoadProfile): TextTable {
  const rows = [
    ...turnPhases.map((phase) => [`${phase} per ${phase === 'tool' ? 'call' : 'turn'}`, perTurn[phase]] as const),
    ...questionPhases.map((phase) => [`${phase} per question`, perQuestion[phase]] as const),
  ];
  return {
    title: `Latency in ms, ${load} in flight (in brackets: bounds; ∞: n is too small for one)`,
    columns: ['phase', 'mean', 'p50', 'p90', 'p95', 'p99', 'n'],
    rows: rows.filter(([, { n, mean }]) => n > 0 && mean !== 0).map(([name, profile]) => profileRow(name, profile, 1)),
  };
}

function tokenTable({ tokensPerTurn }: LoadProfile): TextTable {
  return {
    title: 'Tokens per turn (history in positions)',
    columns: ['tokens', 'mean', 'p50', 'p90', 'p95', 'p99', 'n'],
    rows: tokenCounts.map((count) => profileRow(count, tokensPerTurn[count], 0)),
  };
}

function generationTable({ firstTokenMs, perTokenMs }: ProfileReport['generations']): TextTable {
  return {
    title: 'Generation in ms (thought and action, where both are written)',
    columns: ['', 'mean', 'p50', 'p90', 'p95', 'p99', 'n'],
    rows: [profileRow('first token', firstTokenMs, 2), profileRow('each further token', perTokenMs, 3)],
  };
}

function callTable(calls: ProfileReport['calls']): TextTable {
  const places = [
    ['client', 'clientMs'],
    ['server', 'serverMs'],
    ['model', 'forwardMs'],
  ] as const;
  return {
    title: 'Calls in ms: at the client, at the server, in the model',
    columns: ['call', 'mean', 'p50', 'p90', 'p95', 'p99', 'n'],
    rows: calls.flatMap((call) =>
      places.filter(([, key]) => call[key].n > 0).map(([place, key]) => profileRow(`${call.verb}, ${place}`, call[key], 2)),
    ),
  };
}

function loadTable(loads: readonly LoadProfile[]): TextTable {
  return {
    title: 'Latency against load (ms)',
    columns: ['in flight', 'questions/s', 'reasoning p50', 'reasoning p95', 'model p50', 'model p95', 'errors', 'n'],
    rows: loads.map(({ load, questionsPerSecond, perTurn, perQuestion, questions }) => [
      String(load),
      decimal(questionsPerSecond, 2),
      decimal(perTurn.reasoning.p50.value, 1),
      decimal(perTurn.reasoning.p95.value, 1),
      decimal(perQuestion.model.p50.value, 1),
      decimal(perQuestion.model.p95.value, 1),
      String(questions.errors),
      String(questions.timed),
    ]),
  };
}

function selectionSweepTable({ selection }: Sweep): TextTable {
  return {
    title: 'Selection as it grows (ms)',
    columns: ['varied', 'history', 'candidates', 'tokens each', 'images', 'positions', 'p50', 'p95', 'n'],
    rows: selection.map(({ factor, historyTokens, candidates, candidateTokens, images, positions, ms }) => [
      { historyTokens: 'history', candidates: 'candidates', candidateTokens: 'tokens each', images: 'images' }[factor],
      ...[historyTokens, candidates, candidateTokens, images, positions].map(String),
      quantile(ms.p50, 2),
      quantile(ms.p95, 2),
      String(ms.n),
    ]),
  };
}

function writingSweepTable({ writing }: Sweep): TextTable {
  return {
    title: 'Writing as it grows (ms)',
    columns: ['history', 'written tokens', 'p50', 'p95', 'n'],
    rows: writing.map(({ historyTokens, writtenTokens, ms }) => [
      String(historyTokens),
      String(writtenTokens),
      quantile(ms.p50, 2),
      quantile(ms.p95, 2),
      String(ms.n),
    ]),
  };
}

function notes({ benchmark, seed, sample, warmUp, percentiles, bounds, loads, sweep }: ProfileReport): string {
  const errors = loads[0]?.questions.errors ?? 0;
  const warm = loads[0]?.cache.warmQuestions ?? 0;
  return [
    `${benchmark}, ${sample.length} questions drawn with seed ${seed}; ${warmUp.length} warm-up questions asked first and not counted` +
      (errors === 0 ? '' : `; ${errors} failed and count nowhere`),
    warm === 0
      ? 'Cache: cold, no question began with most of its history in it.'
      : `Cache: ${warm} questions began with most of their history in it; their prefill is not that of a cold start.`,
    `Percentiles: ${percentiles}. Bounds: ${bounds}.`,
    ...(sweep ? sweepNotes(sweep) : []),
  ].join('\n');
}

function sweepNotes({ selectionFit, writingFit, breakEvenTokens, skipped }: Sweep): string[] {
  const line = (name: string, fit: Sweep['selectionFit'], last: string): string => {
    if (fit === null) return `${name}: the points do not determine a line.`;
    const [history = 0, tokens = 0] = fit.slopes;
    return (
      `${name}: ${fit.intercept.toFixed(3)} ms + ${(1000 * history).toFixed(3)} ms per 1000 positions of history + ` +
      `${tokens.toFixed(4)} ms per ${last} (R² ${decimal(fit.r2, 3)}, ${fit.n} points)`
    );
  };
  return [
    line('Selection', selectionFit, 'scored token'),
    line('Writing', writingFit, 'written token'),
    breakEvenTokens === null
      ? 'Break-even: none, writing costs nothing more per token.'
      : `Break-even: a written thought is faster than selection below ${breakEvenTokens.toFixed(1)} tokens.`,
    ...(skipped === 0 ? [] : [`${skipped} points left out: longer than the model's context.`]),
  ];
}

function profileRow(name: string, { n, mean, p50, p90, p95, p99 }: Profile, decimals: number): string[] {
  return [name, decimal(mean, decimals), ...[p50, p90, p95, p99].map((value) => quantile(value, decimals)), String(n)];
}

function quantile({ value, low, high }: Quantile, decimals: number): string {
  if (value === null) return NONE;
  return `${value.toFixed(decimals)} [${low === null ? '0' : low.toFixed(decimals)}, ${high === null ? '∞' : high.toFixed(decimals)}]`;
}

function seconds(ms: number | null): string {
  return decimal(ms === null ? null : ms / 1000, 3);
}

function decimal(value: number | null, decimals: number): string {
  return value === null ? NONE : value.toFixed(decimals);
}
