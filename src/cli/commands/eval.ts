// `ssr eval`: runs a benchmark and reports success, selection and latency.
import { readFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join, relative } from 'node:path';
import { performance } from 'node:perf_hooks';
import { type Command, Option } from 'commander';
import { UsageError } from '../../errors.js';
import { planQuestions } from '../../evaluation/plan.js';
import { runQuestions } from '../../evaluation/run.js';
import { checkOutput, RunFolder } from '../../evaluation/run-folder.js';
import { latencyCsv, successCsv } from '../../reports/csv.js';
import { createSummary } from '../../reports/summary.js';
import { renderSummary } from '../../reports/terminal.js';
import type { Benchmark } from '../../types.js';
import { type CommandContext, EXIT } from '../exit.js';
import { onInterrupt } from '../interrupt.js';
import { describeRun } from '../manifest.js';
import { FIELDS, type Field, type FieldName, flagOf, type Settings } from '../options.js';
import { createProgress } from '../progress.js';
import { type Flags, readSettings } from '../settings.js';
import { type Wiring, wire } from '../wire.js';

type EvalFlags = Flags & { config?: string; json?: boolean };

export function addEvalCommand(program: Command, context: CommandContext): void {
  const command = program.command('eval').description('run a benchmark: Algorithm 1 on every question, then the report');
  for (const [name, { placeholder, help }] of Object.entries(FIELDS) as [FieldName, Field][]) {
    command.addOption(new Option(`${flagOf(name)} <${placeholder}>`, help));
  }
  command
    .option('--config <file>', 'JSON file with the same fields (maxTurns for --max-turns); flags win over it')
    .option('--json', 'print summary.json instead of tables')
    .addHelpText(
      'after',
      `
Examples:
  ssr eval --benchmark micro
  ssr eval --benchmark micro --split hard --limit 50 --output results/try
  ssr eval --benchmark micro --library my-library.json --tau 0.3 --seed 7
  ssr eval --config my-run.json --json > summary.json`,
    )
    .action(async ({ config, json, ...flags }: EvalFlags) => {
      context.setExitCode(await evaluate(await readSettings(flags, config, process.cwd()), json ?? false));
    });
}

async function evaluate(settings: Settings, json: boolean): Promise<number> {
  const startedAt = new Date();
  const output = settings.output ?? join('results', `${settings.benchmark}-${startedAt.toISOString().replace(/[:.]/g, '-')}`);
  await checkOutput(output);
  const wiring = await wire(settings);
  const interrupt = onInterrupt((text) => process.stderr.write(`${text}\n`));
  try {
    const plan = await planRun(wiring.benchmark, settings);
    const folder = await RunFolder.create(output, await describeRun(settings, wiring, plan, startedAt));
    const summary = await runInto(folder, wiring, plan, settings, interrupt);
    const result = summary.result();
    await folder.finish(plan.map(({ id }) => id));
    await folder.write('summary.json', `${JSON.stringify(result, null, 2)}\n`);
    await folder.write('success.csv', successCsv(result));
    await folder.write('latency.csv', latencyCsv(result));
    const report = json ? JSON.stringify(result, null, 2) : renderSummary(result, { colours: process.stdout.isTTY === true });
    process.stdout.write(`${report}\n`);
    if (!json) process.stdout.write(`\nRecords: ${relative(process.cwd(), output) || output}\n`);
    if (interrupt.drain.aborted) return EXIT.interrupted;
    return belowMinimum(result.success.overall, settings.minSuccess) ? EXIT.belowMinimum : EXIT.ok;
  } finally {
    interrupt.dispose();
    await wiring.agent.engine.close();
  }
}

async function planRun(benchmark: Benchmark, { ids, limit, sample, seed }: Settings): Promise<Benchmark['entries']> {
  const named = ids === undefined ? undefined : await readIds(ids);
  return planQuestions(benchmark.entries, {
    seed,
    ...(named && { ids: named }),
    ...(limit !== undefined && { limit }),
    ...(sample !== undefined && { sample }),
  });
}

async function readIds(path: string): Promise<string[]> {
  const source = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new UsageError('cannot read the ids', { where: path, found: error.code ?? error.message, cause: error });
  });
  return source
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter((line) => line !== '');
}

async function runInto(
  folder: RunFolder,
  { agent, benchmark, judge, candidates }: Wiring,
  entries: Benchmark['entries'],
  settings: Settings,
  interrupt: ReturnType<typeof onInterrupt>,
) {
  const clock = (): number => performance.now();
  const summary = createSummary({ planned: entries.length, candidates });
  const progress = createProgress(entries.length, process.stderr, clock);
  const concurrency = settings.concurrency ?? availableParallelism();
  const { seed } = settings;
  const { drain, signal } = interrupt;
  try {
    for await (const { episode, images } of runQuestions({
      agent,
      benchmark,
      judge,
      clock,
      seed,
      entries,
      concurrency,
      drain,
      signal,
    })) {
      await folder.append(episode, images);
      summary.add(episode);
      progress.add(episode);
    }
  } finally {
    progress.stop();
  }
  return summary;
}

function belowMinimum({ rate }: { rate: number | null }, minimum: number | undefined): boolean {
  return minimum !== undefined && (rate === null || 100 * rate < minimum);
}
