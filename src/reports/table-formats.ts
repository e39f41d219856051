// The success table in one of five formats.
import { csvTable, latexTable, markdownTable, terminalTable } from './compare-formats.js';
import type { TextTable } from './compare-tables.js';
import type { PaperComparison } from './paper.js';
import type { RunResult, SuccessTable } from './table.js';
import { dataTable, paperDataTable, paperTable, peopleTable, repeatsTable, tableNotes } from './table-text.js';

export type TableFormat = 'terminal' | 'csv' | 'markdown' | 'latex' | 'json';

export const tableFormats: readonly TableFormat[] = ['terminal', 'csv', 'markdown', 'latex', 'json'];

/** With a final newline. */
export function renderTable(table: SuccessTable, comparison: PaperComparison | null, format: TableFormat): string {
  if (format === 'json') return `${JSON.stringify({ ...table, paper: comparison }, withoutVerdicts, 2)}\n`;
  const repeats = repeatsTable(table) ?? [];
  if (format === 'csv') {
    return [dataTable(table), repeats, comparison ? paperDataTable(table, comparison) : []].flat().map(csvTable).join('\n');
  }
  const tables = [peopleTable(table), repeats, comparison ? paperTable(table, comparison) : []].flat();
  if (format === 'latex') return `${tables.map(latexTable).join('\n\n')}\n`;
  const render: (one: TextTable) => string = format === 'markdown' ? markdownTable : terminalTable;
  return `${[...tables.map(render), tableNotes(table, comparison).join(format === 'markdown' ? '\n\n' : '\n')].join('\n\n')}\n`;
}

/** A verdict per question stands in the runs' own records. */
function withoutVerdicts(key: keyof RunResult | string, value: unknown): unknown {
  return key === 'verdicts' ? undefined : value;
}
