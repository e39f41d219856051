// `ssr profile`: where the time goes, on a stratified sample and, with --sweep, on histories and libraries of any size.
import { mkdir, writeFile } from 'node:fs/promises';
import { join, relative, resolve } from 'node:path';
import { type Command, Option } from 'commander';
import { SsrError, UsageError } from '../../errors.js';
import { type ProfileFormat, renderProfile } from '../../reports/profile-tables.js';
import { type CommandContext, EXIT } from '../exit.js';
import { fieldOption } from '../field-option.js';
import { FIELDS, type FieldName } from '../options.js';
import { type Flags, readSettings } from '../settings.js';
import { parseArms } from './compare-arms.js';
import { profileArm } from './profile-run.js';

interface ProfileFlags {
  readonly config?: string;
  readonly samples: string;
  readonly warmUp: string;
  readonly loads: string;
  readonly cache: 'cold' | 'recorded';
  readonly sweep?: boolean;
  readonly repeats: string;
  readonly format: ProfileFormat;
}

/** Fields that the profile sets itself or has no use for. */
const OWN: readonly FieldName[] = ['reasoning', 'concurrency', 'ids', 'limit', 'sample', 'maxErrorRate', 'minSuccess'];
const FILES: Readonly<Record<ProfileFormat, string>> = {
  terminal: 'profile.txt',
  csv: 'profile.csv',
  markdown: 'profile.md',
  latex: 'profile.tex',
  json: 'profile.json',
};

export function addProfileCommand(program: Command, context: CommandContext): void {
  const command = program
    .command('profile [arm]')
    .description('latency phase by phase on a stratified sample; --sweep shows how the cost grows');
  for (const name of Object.keys(FIELDS) as FieldName[]) {
    if (!OWN.includes(name)) command.addOption(fieldOption(name));
  }
  command
    .option('--config <file>', 'JSON file with the same fields')
    .option('--samples <n>', 'questions, drawn with --seed and stratified by type', '100')
    .option('--warm-up <n>', 'questions asked first and not counted', '3')
    .option('--loads <list>', 'questions in flight, one pass each: 1,2,4 shows latency against load', '1')
    .addOption(
      new Option('--cache <protocol>', 'cold: fail when a question begins with most of its history in the cache')
        .choices(['recorded', 'cold'])
        .default('recorded'),
    )
    .option('--sweep', 'also measure selection and writing against history, candidates, their length and images')
    .option('--repeats <n>', 'measurements per point of the sweep', '10')
    .addOption(new Option('--format <name>', 'what to print').choices(Object.keys(FILES)).default('terminal'))
    .addHelpText(
      'after',
      `
The arm is a way of reasoning as in ssr compare, selection by default.

Examples:
  ssr profile --benchmark micro --samples 100
  ssr profile freeform --benchmark micro --samples 50 --loads 1,2,4
  ssr profile --benchmark micro --samples 10 --sweep --format markdown`,
    )
    .action(async (arm: string | undefined, flags: ProfileFlags & Flags) => {
      const { config, samples, warmUp, loads, cache, sweep, repeats, format, ...fields } = flags;
      const [spec] = parseArms([arm ?? 'selection']);
      if (spec?.kind !== 'live') throw new UsageError('a finished run cannot be profiled', { expected: 'a way of reasoning' });
      const { output: _, ...own } = { ...fields, ...spec.flags };
      const settings = await readSettings(own, spec.config ?? config, process.cwd());
      const output = resolve(String(fields.output ?? join('results', `profile-${settings.benchmark}-${timestamp()}`)));
      const { report, interrupted } = await profileArm(
        { name: spec.name, settings },
        {
          samples: whole(samples, '--samples', 1),
          warmUp: whole(warmUp, '--warm-up', 0),
          loads: loads.split(',').map((load) => whole(load, '--loads', 1)),
          sweepRepeats: sweep ? whole(repeats, '--repeats', 1) : null,
        },
      );
      if (interrupted) return context.setExitCode(EXIT.interrupted);
      await mkdir(output, { recursive: true });
      for (const [name, file] of Object.entries(FILES) as [ProfileFormat, string][]) {
        await writeFile(join(output, file), renderProfile(report, name));
      }
      process.stdout.write(renderProfile(report, format));
      process.stderr.write(`Written: ${relative(process.cwd(), output) || output}\n`);
      const warm = report.loads.reduce((sum, load) => sum + load.cache.warmQuestions, 0);
      if (cache === 'cold' && warm > 0) {
        throw new SsrError('the cache was not cold', {
          expected: 'no question that begins with most of its history in it',
          found: `${warm} such questions`,
          remedy: 'Flush or restart the engine, or give --cache recorded.',
        });
      }
    });
}

function whole(text: string, flag: string, least: number): number {
  const value = Number(text);
  if (text.trim() === '' || !Number.isInteger(value) || value < least) {
    throw new UsageError('not a count', { where: flag, expected: `a whole number of at least ${least}`, found: text });
  }
  return value;
}

function timestamp(): string {
  return new Date().toISOString().slice(0, 19).replace(/[:T]/g, '-');
}
