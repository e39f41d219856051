// `ssr eval`: the command line of a run.
import { join, resolve } from 'node:path';
import type { Command } from 'commander';
import { UsageError } from '../../errors.js';
import { type EvaluateFlags, evaluate } from '../evaluate.js';
import { allBenchmarks, evaluateMany } from '../evaluate-many.js';
import type { CommandContext } from '../exit.js';
import { fieldOption } from '../field-option.js';
import { FIELDS, type FieldName } from '../options.js';
import { type Flags, readSettings } from '../settings.js';

type EvalFlags = Flags & EvaluateFlags & { readonly config?: string; readonly repeat: string };

export function addEvalCommand(program: Command, context: CommandContext): void {
  const command = program.command('eval').description('run a benchmark: Algorithm 1 on every question, then the report');
  for (const name of Object.keys(FIELDS) as FieldName[]) {
    command.addOption(fieldOption(name));
  }
  command
    .option('--config <file>', 'JSON file with the same fields (maxTurns for --max-turns); flags win over it')
    .option('--fresh', 'start again in a folder that holds a run, which is removed')
    .option('--retry-errors', 'when resuming, ask again also where a tool or the judge failed')
    .option('--repeat <n>', 'ask everything n times with seeds of their own: pass@k and spread over the repeats', '1')
    .option('--json', 'print summary.json instead of tables')
    .addHelpText(
      'after',
      `
A folder that holds the same run is resumed: finished questions stay, failed and missing ones are asked.
--benchmark all runs the seven published benchmarks, a folder each, and prints their table; --repeat makes a folder for each repeat.

Examples:
  ssr eval --benchmark micro
  ssr eval --benchmark micro --split hard --limit 50 --output results/try
  ssr eval --benchmark micro --library my-library.json --tau 0.3 --seed 7
  ssr eval --benchmark all --model my-model --limit 20
  ssr eval --benchmark micro --temperature 0.7 --tau 0.3 --repeat 4 --limit 50
  ssr eval --config my-run.json --json > summary.json`,
    )
    .action(async ({ config, fresh, retryErrors, json, repeat: times, ...flags }: EvalFlags) => {
      const settings = await readSettings(flags, config, process.cwd());
      const output = settings.output ?? resolve(join('results', `${outputName(settings.benchmark)}-${timestamp()}`));
      const repeat = parseRepeat(times);
      const how = { fresh, retryErrors, json };
      if (settings.benchmark !== 'all' && repeat === 1) return context.setExitCode(await evaluate(settings, output, how));
      const names = settings.benchmark === 'all' ? allBenchmarks : [settings.benchmark];
      const each = names.map((benchmark) => readSettings({ ...flags, benchmark }, config, process.cwd()));
      context.setExitCode(await evaluateMany({ settings: await Promise.all(each), repeat, output, flags: how }));
    });
}

function parseRepeat(text: string): number {
  if (/^[1-9]\d*$/.test(text)) return Number(text);
  throw new UsageError('not a number of repeats', { where: '--repeat', expected: 'a whole number from 1', found: text });
}

/** A benchmark may be a path. */
function outputName(benchmark: string): string {
  return (
    benchmark
      .split(/[/\\]/)
      .at(-1)
      ?.replace(/[^\w.-]+/g, '-') || 'run'
  );
}

/** UTC to the millisecond, for a folder's name: two runs must not meet in one. */
function timestamp(): string {
  return new Date().toISOString().slice(0, 23).replace(/[:T.]/g, '-');
}
