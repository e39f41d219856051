// One set of tables, written as terminal text, CSV, Markdown or LaTeX.
import Table from 'cli-table3';
import { stringify } from 'csv-stringify/sync';
import type { Comparison } from './compare.js';
import { comparisonTables, profileTable, successTable, type TextTable, verdictLines } from './compare-tables.js';

export type CompareFormat = 'terminal' | 'csv' | 'markdown' | 'latex' | 'json';

/** The comparison in one format, with a final newline. */
export function renderComparison(comparison: Comparison, format: CompareFormat): string {
  const tables = comparisonTables(comparison);
  switch (format) {
    case 'json':
      return `${JSON.stringify(comparison, null, 2)}\n`;
    case 'csv':
      return `${tables.map(csvTable).join('\n')}`;
    case 'markdown':
      return `${[...tables.map(markdownTable), ...notes(comparison)].join('\n\n')}\n`;
    case 'latex':
      return `${[successTable(comparison), profileTable(comparison)].map(latexTable).join('\n\n')}\n`;
    case 'terminal':
      return `${[...tables.map(terminalTable), ...notes(comparison)].join('\n\n')}\n`;
  }
}

/** What the figures rest on: verdicts, allowed differences, warm caches, discordant questions. */
function notes(comparison: Comparison): string[] {
  const { arms, comparisons, warm, intervals } = comparison;
  const differing = comparisons.flatMap(({ arm, differences }) =>
    differences.map(
      ({ benchmark, condition, reference, arm: other }) =>
        `${arm} on ${benchmark} differs in ${condition}: ${other} instead of ${reference}`,
    ),
  );
  const discordant = comparisons.flatMap(({ reference, arm, benchmarks }) =>
    benchmarks.flatMap(({ discordant: { onlyReference, onlyArm } }) => [
      ...idLine(`Right with ${reference} alone`, onlyReference),
      ...idLine(`Right with ${arm} alone`, onlyArm),
    ]),
  );
  return [
    verdictLines(comparison).join('\n'),
    ...(warm.length === 0 ? [] : [warm.map(warmLine).join('\n')]),
    ...arms.flatMap(({ name, turns, writtenTurns, mismatchedTurns }) => [
      ...(writtenTurns > 0 && writtenTurns < turns ? [`${name} wrote its reasoning in ${writtenTurns} of ${turns} turns`] : []),
      ...(mismatchedTurns > 0 ? [`${mismatchedTurns} of ${writtenTurns} thoughts that ${name} wrote are no entry's text`] : []),
    ]),
    ...(differing.length === 0 ? [] : [differing.join('\n')]),
    ...(discordant.length === 0 ? [] : [discordant.join('\n')]),
    `Differences are arm minus first arm. Intervals: ${intervals}. McNemar: exact, two-sided; Holm: over benchmarks.`,
  ].filter((note) => note !== '');
}

function warmLine({ arm, questions, n }: Comparison['warm'][number]): string {
  return (
    `WARM CACHE: ${questions} of ${n} questions of ${arm} began with their history in the cache, left by another asking; ` +
    'latencies are not comparable.'
  );
}

function idLine(what: string, ids: readonly string[]): string[] {
  const shown = ids.slice(0, 10).join(', ');
  return ids.length === 0 ? [] : [`${what} (${ids.length}): ${shown}${ids.length > 10 ? ', …' : ''}`];
}

export function terminalTable({ title, columns, rows }: TextTable): string {
  const table = new Table({
    head: [...columns],
    colAligns: columns.map((_, i) => (isText(rows, i) ? 'left' : 'right')),
    style: { head: [], border: [], compact: true },
  });
  table.push(...rows.map((row) => [...row]));
  return `${title}\n${table.toString()}`;
}

/** The title stands in the first column of every row, so that several tables in one file can be told apart. */
export function csvTable({ title, columns, rows }: TextTable): string {
  return stringify([['table', ...columns], ...rows.map((row) => [title, ...row.map((cell) => (cell === '–' ? '' : cell))])], {
    record_delimiter: 'unix',
  });
}

export function markdownTable({ title, columns, rows }: TextTable): string {
  const line = (cells: readonly string[]): string => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  const ruler = line(columns.map((_, i) => (isText(rows, i) ? '---' : '---:')));
  return [`**${title}**`, '', line(columns), ruler, ...rows.map(line)].join('\n');
}

/** booktabs, as the paper sets its tables. */
export function latexTable({ title, columns, rows }: TextTable): string {
  const line = (cells: readonly string[]): string => `${cells.map(escapeLatex).join(' & ')} \\\\`;
  return [
    '\\begin{table}[t]',
    '\\centering',
    `\\caption{${escapeLatex(title)}}`,
    `\\begin{tabular}{${columns.map((_, i) => (i === 0 ? 'l' : 'r')).join('')}}`,
    '\\toprule',
    line(columns),
    '\\midrule',
    ...rows.map(line),
    '\\bottomrule',
    '\\end{tabular}',
    '\\end{table}',
  ].join('\n');
}

function escapeLatex(text: string): string {
  return text
    .replace(/[\\{}]/g, (sign) => (sign === '\\' ? '\\textbackslash{}' : `\\${sign}`))
    .replace(/[%&#_$]/g, (sign) => `\\${sign}`)
    .replaceAll('^', '\\textasciicircum{}')
    .replaceAll('~', '\\textasciitilde{}')
    .replaceAll('–', '--');
}

/** A column of names stands left, one of figures right. */
function isText(rows: readonly (readonly string[])[], column: number): boolean {
  return rows.some((row) => /^\p{L}/u.test(row[column] ?? ''));
}
