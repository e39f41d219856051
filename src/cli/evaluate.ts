// A run from settings to report: plan, folder, questions, summary, exit code.
import { readFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { relative } from 'node:path';
import { performance } from 'node:perf_hooks';
import type { CallRecord } from '../engines/sglang/calls.js';
import { UsageError } from '../errors.js';
import { createBreaker } from '../evaluation/breaker.js';
import { checkOutput } from '../evaluation/output.js';
import { planQuestions } from '../evaluation/plan.js';
import { type RunOptions, runQuestions } from '../evaluation/run.js';
import { RunFolder } from '../evaluation/run-folder.js';
import { latencyCsv, successCsv } from '../reports/csv.js';
import { createSummary, type Summary } from '../reports/summary.js';
import { renderSummary } from '../reports/terminal.js';
import type { ToolStatistics } from '../tools/statistics.js';
import type { Benchmark } from '../types.js';
import { EXIT } from './exit.js';
import { onInterrupt } from './interrupt.js';
import { describeRun } from './manifest.js';
import type { Settings } from './options.js';
import { createProgress } from './progress.js';
import { type Wiring, wire } from './wire.js';

export interface EvaluateFlags {
  readonly fresh?: boolean | undefined;
  readonly retryErrors?: boolean | undefined;
  readonly json?: boolean | undefined;
  /** Print no report. */
  readonly quiet?: boolean;
  /** Chooses the questions of a sample, where it is not the run's own seed. */
  readonly planSeed?: number;
}

/** Runs or resumes, writes the folder's reports, prints the summary to stdout and returns the exit code. */
export async function evaluate(settings: Settings, output: string, flags: EvaluateFlags): Promise<number> {
  await checkOutput(output);
  // Calls to a server are logged once there is a folder; those of the preflight come before it.
  let logCall = (_: CallRecord): void => undefined;
  const wiring = await wire(settings, process.env, { onCall: (call) => logCall(call) });
  try {
    const plan = await planRun(wiring.benchmark, settings, flags.planSeed ?? settings.seed);
    const { summary, interrupted } = await runInto(output, wiring, plan, settings, flags, (folder) => {
      logCall = (call) => folder.logCall(call);
    });
    if (!flags.quiet)
      process.stdout.write(
        flags.json
          ? `${JSON.stringify(summary, null, 2)}\n`
          : `${renderSummary(summary, { colours: process.stdout.isTTY === true })}\n\nRecords: ${relative(process.cwd(), output) || output}\n`,
      );
    reportTools(wiring.tools.statistics(), settings.minToolSuccess);
    if (interrupted) return EXIT.interrupted;
    return exitCodeOf(summary, settings.minSuccess);
  } finally {
    await Promise.all([wiring.agent.engine.close(), wiring.tools.close()]);
  }
}

async function planRun(benchmark: Benchmark, { ids, limit, sample }: Settings, seed: number): Promise<Benchmark['entries']> {
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

/** Asks what the folder still owes; whatever happens, the reports say what has been recorded so far. */
async function runInto(
  output: string,
  wiring: Wiring,
  plan: Benchmark['entries'],
  settings: Settings,
  flags: EvaluateFlags,
  onFolder: (folder: RunFolder) => void,
): Promise<{ summary: Summary; interrupted: boolean }> {
  const accumulator = createSummary({ planned: plan.length, candidates: wiring.candidates });
  const folder = await RunFolder.open(output, await describeRun(settings, wiring, plan, new Date()), {
    fresh: flags.fresh ?? false,
    retryErrors: flags.retryErrors ?? false,
    onKept: accumulator.add,
  });
  onFolder(folder);
  const owed = plan.filter(({ id }) => !folder.has(id));
  const interrupt = onInterrupt((text) => process.stderr.write(`\n${text}\n`));
  const clock = (): number => performance.now();
  const progress = createProgress(owed.length, process.stderr, clock);
  if (owed.length < plan.length) progress.note(`Resuming: ${plan.length - owed.length} of ${plan.length} questions are done.`);
  try {
    for await (const { episode, images } of runQuestions({
      ...runOptions(wiring, settings),
      entries: owed,
      clock,
      ...interrupt,
    })) {
      await folder.append(episode, images);
      accumulator.add(episode);
      progress.add(episode);
    }
  } finally {
    progress.stop();
    try {
      await writeReports(folder, plan, accumulator.result(), wiring.tools.statistics());
    } finally {
      await folder.close();
      interrupt.dispose();
    }
  }
  return { summary: accumulator.result(), interrupted: interrupt.drain.aborted };
}

function runOptions({ agent, benchmark, judge }: Wiring, settings: Settings): Omit<RunOptions, 'entries' | 'clock'> {
  const { seed, questionLimit, maxErrorRate } = settings;
  const concurrency = settings.concurrency ?? availableParallelism();
  return {
    agent,
    benchmark,
    judge,
    seed,
    concurrency,
    breaker: createBreaker({
      unavailableInARow: Math.max(3, concurrency),
      maxErrorRate: maxErrorRate === undefined ? null : maxErrorRate / 100,
    }),
    ...(questionLimit !== undefined && { questionLimitMs: 1000 * questionLimit }),
  };
}

async function writeReports(
  folder: RunFolder,
  plan: Benchmark['entries'],
  summary: Summary,
  tools: ToolStatistics,
): Promise<void> {
  await folder.sort(plan.map(({ id }) => id));
  await folder.write('summary.json', `${JSON.stringify(summary, null, 2)}\n`);
  await folder.write('success.csv', successCsv(summary));
  await folder.write('latency.csv', latencyCsv(summary));
  await folder.write('tools.json', `${JSON.stringify(tools, null, 2)}\n`);
}

/** A search layer that answers little makes success meaningless; it is said on stderr, where scripts do not trip over it. */
function reportTools({ successRate, paid }: ToolStatistics, minimum: number | undefined): void {
  for (const { provider, paidCalls, cost } of paid) {
    process.stderr.write(`${provider}: ${paidCalls} paid calls${cost === null ? '' : `, cost ${cost.toFixed(2)}`}\n`);
  }
  if (minimum !== undefined && successRate !== null && 100 * successRate < minimum) {
    process.stderr.write(`Unhealthy run: ${(100 * successRate).toFixed(1)}% of tool calls were answered, ${minimum}% wanted.\n`);
  }
}

/** A run in which nothing could be scored has failed, by its data or otherwise. */
function exitCodeOf({ success, errors }: Summary, minimum: number | undefined): number {
  const { n, rate } = success.overall;
  if (n === 0 && errors.length > 0) return errors.every(({ kind }) => kind === 'DataError') ? EXIT.data : EXIT.errors;
  return minimum !== undefined && (rate === null || 100 * rate < minimum) ? EXIT.belowMinimum : EXIT.ok;
}
