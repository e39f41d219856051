// `ssr compare`: arms on the same questions, paired; finished runs are read, ways of reasoning and configs are run in turn.
import { mkdir, writeFile } from 'node:fs/promises';
import { join, relative, resolve } from 'node:path';
import { type Command, Option } from 'commander';
import { UsageError } from '../../errors.js';
import { compareArms } from '../../reports/compare.js';
import { type Condition, conditions } from '../../reports/compare-alike.js';
import { type CompareFormat, renderComparison } from '../../reports/compare-formats.js';
import type { Arm } from '../../reports/compare-outcome.js';
import { type CommandContext, EXIT } from '../exit.js';
import { fieldOption } from '../field-option.js';
import { FIELDS, type FieldName } from '../options.js';
import { type Flags, readSettings } from '../settings.js';
import { type ArmSpec, parseArms, readArm } from './compare-arms.js';
import { type LiveArm, runArms } from './compare-run.js';

interface CompareFlags {
  readonly config?: string;
  readonly margin: string;
  readonly allow?: string;
  readonly format: CompareFormat;
  readonly fresh?: boolean;
}

/** Fields that an arm sets itself, or that a comparison has no use for. */
const PER_ARM: readonly FieldName[] = ['reasoning', 'concurrency', 'ids', 'maxErrorRate', 'minSuccess'];
const FILES: Readonly<Record<CompareFormat, string>> = {
  terminal: 'comparison.txt',
  csv: 'comparison.csv',
  markdown: 'comparison.md',
  latex: 'comparison.tex',
  json: 'comparison.json',
};

export function addCompareCommand(program: Command, context: CommandContext): void {
  const command = program
    .command('compare <arm> <arms...>')
    .description('arms on the same questions: paired success and latency, with tests and intervals');
  for (const name of Object.keys(FIELDS) as FieldName[]) {
    if (!PER_ARM.includes(name)) command.addOption(fieldOption(name, ' (arms that run now)'));
  }
  command
    .option('--config <file>', 'JSON file with the fields that arms share')
    .option('--margin <points>', 'success in percentage points that an arm may lose and still be called no worse', '2')
    .option('--allow <names>', `differences that are meant, separated by commas: ${conditions.join(', ')}`)
    .addOption(new Option('--format <name>', 'what to print').choices(Object.keys(FILES)).default('terminal'))
    .option('--fresh', 'run live arms again, also where their folders hold finished questions')
    .addHelpText(
      'after',
      `
An arm is
  a finished run          results/run, or results/run-a,results/run-b for one run per benchmark
  a way of reasoning      selection (or ssr), index, autoregressive, freeform, chain-of-draft, sketch-of-thought,
                          probe-prefill, logprob-prefill, none; options behind a colon: selection:alpha=0,scorer=first-divergent
  a config                my-run.json
each with a name of your own where you like: sum=selection:alpha=0. Every arm is compared with the first.

Examples:
  ssr compare freeform ssr --benchmark micro
  ssr compare whole=selection index autoregressive --benchmark micro --split hard
  ssr compare results/one results/other --allow model
  ssr compare ssr ssr --benchmark micro --limit 50        the same arm twice: the difference must be nothing`,
    )
    .action(async (first: string, others: string[], { config, margin, allow, format, fresh, ...flags }: CompareFlags & Flags) => {
      const specs = parseArms([first, ...others]);
      const settings = { margin: parseMargin(margin), allowed: parseAllowed(allow) };
      const output = resolve(String(flags.output ?? join('results', `compare-${timestamp()}`)));
      const { arms, interrupted } = await openArms(specs, flags, config, output, fresh ?? false);
      if (interrupted) return context.setExitCode(EXIT.interrupted);
      const comparison = compareArms(arms, { ...settings, seed: Number(flags.seed ?? 42) });
      process.stdout.write(renderComparison(comparison, format));
      await mkdir(output, { recursive: true });
      for (const [name, file] of Object.entries(FILES) as [CompareFormat, string][]) {
        await writeFile(join(output, file), renderComparison(comparison, name));
      }
      process.stderr.write(`Written: ${relative(process.cwd(), output) || output}\n`);
    });
}

/** Runs what must run, then reads all arms from their folders, in the order of the command line. */
async function openArms(
  specs: readonly ArmSpec[],
  shared: Flags,
  config: string | undefined,
  output: string,
  fresh: boolean,
): Promise<{ readonly arms: readonly Arm[]; readonly interrupted: boolean }> {
  const { output: _, ...fields } = shared;
  const live: LiveArm[] = [];
  for (const spec of specs) {
    if (spec.kind === 'runs') continue;
    const own = { ...fields, ...spec.flags, concurrency: '1' };
    const settings = await readSettings(own, spec.config ?? config, process.cwd());
    live.push({ name: spec.name, settings });
  }
  const run = live.length === 0 ? null : await runArms(live, output, fresh);
  if (run?.interrupted) return { arms: [], interrupted: true };
  const folders = [...(run?.folders ?? [])];
  const arms = specs.map((spec) => readArm(spec.name, spec.kind === 'runs' ? spec.folders : [folders.shift() as string]));
  return { arms: await Promise.all(arms), interrupted: false };
}

function parseMargin(text: string): number {
  const points = Number(text);
  if (text.trim() === '' || !(points >= 0 && points <= 100)) {
    throw new UsageError('not a margin', { where: '--margin', expected: 'percentage points from 0 to 100', found: text });
  }
  return points / 100;
}

function parseAllowed(text: string | undefined): Condition[] {
  const names = (text ?? '').split(',').filter((name) => name !== '');
  const unknown = names.find((name) => !conditions.includes(name as Condition));
  if (unknown !== undefined) {
    throw new UsageError('no such condition', { where: '--allow', expected: `one of ${conditions.join(', ')}`, found: unknown });
  }
  return names as Condition[];
}

function timestamp(): string {
  return new Date().toISOString().slice(0, 19).replace(/[:T]/g, '-');
}
