// `ssr library show|check`: what a reasoning library costs in tokens and whether it is sound for a tokenizer.
import { resolve } from 'node:path';
import Table from 'cli-table3';
import type { Command } from 'commander';
import { createSsrDialect } from '../../agent/dialects/ssr.js';
import { loadLibrary, tokeniseLibrary } from '../../agent/library.js';
import { type Finding, inspectLibrary } from '../../agent/library-check.js';
import { loadTokenizer } from '../../agent/tokenizer.js';
import { safeText } from '../../reports/safe-text.js';
import { defaultModel } from '../defaults.js';
import { type CommandContext, EXIT } from '../exit.js';

interface LibraryFlags {
  readonly model?: string;
  readonly json?: boolean;
}

export function addLibraryCommand(program: Command, context: CommandContext): void {
  const library = program.command('library').description('look at a reasoning library');
  const withOptions = (command: Command): Command =>
    command
      .option('--model <folder>', 'checkpoint folder whose tokenizer counts (default: the micro checkpoint)')
      .option('--json', 'print JSON');

  withOptions(library.command('show <file>').description('the candidates in scoring order with their token counts')).action(
    async (file: string, flags: LibraryFlags) => {
      const { candidates } = await inspect(file, flags);
      process.stdout.write(`${flags.json ? JSON.stringify(candidates, null, 2) : candidateTable(candidates)}\n`);
    },
  );

  withOptions(library.command('check <file>').description('token counts, shared prefixes, duplicates, stable boundaries'))
    .addHelpText(
      'after',
      '\nExit code 0 when nothing failed, 4 otherwise.\n\nExample:\n  ssr library check configs/libraries/default.json',
    )
    .action(async (file: string, flags: LibraryFlags) => {
      const { findings } = await inspect(file, flags);
      process.stdout.write(`${flags.json ? JSON.stringify(findings, null, 2) : findingTable(findings)}\n`);
      context.setExitCode(findings.some(({ status }) => status === 'fail') ? EXIT.data : EXIT.ok);
    });
}

async function inspect(file: string, { model }: LibraryFlags) {
  const library = await loadLibrary(resolve(file));
  const tokenizer = await loadTokenizer(model === undefined ? defaultModel() : resolve(model));
  const dialect = createSsrDialect('', tokenizer.addedTokens);
  const candidates = tokeniseLibrary(library, dialect, tokenizer);
  return { candidates, findings: inspectLibrary(candidates, dialect, tokenizer) };
}

function candidateTable(candidates: Awaited<ReturnType<typeof inspect>>['candidates']): string {
  const table = new Table({
    head: ['#', 'id', 'K', 'expected action', 'text'],
    colWidths: [4, null, 5, null, 60],
    wordWrap: true,
    colAligns: ['right', 'left', 'right'],
    style: { head: [], border: [] },
  });
  for (const [i, { id, ids, expectedActions, text }] of candidates.entries()) {
    table.push([i, safeText(id), ids.length, expectedActions.join(', '), safeText(text)]);
  }
  const total = candidates.reduce((sum, { ids }) => sum + ids.length, 0);
  return `${table.toString()}\n${candidates.length} candidates, ${total} tokens scored per turn`;
}

function findingTable(findings: readonly Finding[]): string {
  const table = new Table({
    head: ['check', 'status', 'detail'],
    colWidths: [null, null, 90],
    wordWrap: true,
    style: { head: [], border: [] },
  });
  for (const { check, status, detail } of findings) table.push([check, status, safeText(detail)]);
  return table.toString();
}
