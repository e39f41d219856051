// `ssr eval`: the command line of a run.
import { join, resolve } from 'node:path';
import { type Command, Option } from 'commander';
import { type EvaluateFlags, evaluate } from '../evaluate.js';
import type { CommandContext } from '../exit.js';
import { FIELDS, type Field, type FieldName, flagOf } from '../options.js';
import { type Flags, readSettings } from '../settings.js';

type EvalFlags = Flags & EvaluateFlags & { readonly config?: string };

export function addEvalCommand(program: Command, context: CommandContext): void {
  const command = program.command('eval').description('run a benchmark: Algorithm 1 on every question, then the report');
  for (const [name, { kind, placeholder, help }] of Object.entries(FIELDS) as [FieldName, Field][]) {
    command.addOption(new Option(kind === 'switch' ? flagOf(name) : `${flagOf(name)} <${placeholder}>`, help));
  }
  command
    .option('--config <file>', 'JSON file with the same fields (maxTurns for --max-turns); flags win over it')
    .option('--fresh', 'start again in a folder that holds a run, which is removed')
    .option('--retry-errors', 'when resuming, ask again also where a tool or the judge failed')
    .option('--json', 'print summary.json instead of tables')
    .addHelpText(
      'after',
      `
A folder that holds the same run is resumed: finished questions stay, failed and missing ones are asked.

Examples:
  ssr eval --benchmark micro
  ssr eval --benchmark micro --split hard --limit 50 --output results/try
  ssr eval --benchmark micro --library my-library.json --tau 0.3 --seed 7
  ssr eval --config my-run.json --json > summary.json`,
    )
    .action(async ({ config, fresh, retryErrors, json, ...flags }: EvalFlags) => {
      const settings = await readSettings(flags, config, process.cwd());
      const output = settings.output ?? resolve(join('results', `${settings.benchmark}-${timestamp()}`));
      context.setExitCode(await evaluate(settings, output, { fresh, retryErrors, json }));
    });
}

/** Local time, for a folder's name. */
function timestamp(): string {
  return new Date().toISOString().slice(0, 19).replace(/[:T]/g, '-');
}
