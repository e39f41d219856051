// `ssr report`: the success table of finished runs, alone or beside the published one.
import { resolve } from 'node:path';
import { type Command, Option } from 'commander';
import { renderTable, type TableFormat, tableFormats } from '../../reports/table-formats.js';
import { comparePaper, readTable } from '../report-runs.js';

interface ReportFlags {
  readonly against?: 'paper';
  readonly format: TableFormat;
}

export function addReportCommand(program: Command): void {
  program
    .command('report <runs...>')
    .description('success per benchmark with intervals and errors, and the macro average; a folder of runs counts as all of them')
    .addOption(new Option('--against <table>', 'published figures beside these').choices(['paper']))
    .addOption(new Option('--format <name>', 'what to print').choices(tableFormats).default('terminal'))
    .addHelpText(
      'after',
      `
Runs that differ in their seed alone are repeats: their mean, pass@k and spread are shown.

Examples:
  ssr report results/all-2026-01-31
  ssr report results/mmsearch-1 results/livevqa-1 --against paper
  ssr report results/all-2026-01-31 --format latex > table.tex`,
    )
    .action(async (runs: string[], { against, format }: ReportFlags) => {
      const table = await readTable(runs.map((run) => resolve(run)));
      process.stdout.write(renderTable(table, against === undefined ? null : await comparePaper(table), format));
    });
}
