// `ssr data prepare`: published data sets become folders that evaluation reads, one process for each.
import { homedir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { dataSource, dataSources } from '../../../benchmarks/registry.js';
import { hubOptionsFromEnvironment } from '../../data/hub/options.js';
import { DataError, SsrError } from '../../errors.js';
import { createDataProgress, sizeText } from '../data-progress.js';
import { type CommandContext, EXIT } from '../exit.js';
import { makeFolder } from '../folders.js';
import { type PrepareJob, type PrepareOutcome, prepareInProcess } from '../prepare-process.js';
import { stoppable } from '../stoppable.js';

export interface PrepareFlags {
  readonly data: string;
  readonly from?: string;
  readonly allowCountMismatch?: boolean;
}

/** Every set is tried; the failure of one is a line, and the exit code in the end. */
export async function prepareCommand(names: readonly string[], flags: PrepareFlags, context: CommandContext): Promise<void> {
  const jobs = await jobsOf(names, flags);
  await makeFolder(resolve(flags.data));
  const failures: string[] = [];
  for (const job of jobs) {
    try {
      const outcome = await stoppable((signal) => runJob(job, signal));
      if (outcome === null) {
        process.stderr.write(
          `Interrupted: nothing half-written is left.${job.from === null ? ' What was downloaded is kept for the next call.' : ''}\n`,
        );
        return context.setExitCode(EXIT.interrupted);
      }
      process.stdout.write(`${describeOutcome(job, outcome)}\n`);
    } catch (error) {
      if (jobs.length === 1 || !(error instanceof SsrError)) throw error;
      process.stderr.write(`ssr: ${error.message}\n`);
      failures.push(job.name);
    }
  }
  if (failures.length > 0)
    throw new DataError(`${failures.length} of ${jobs.length} data sets failed`, { found: failures.join(', ') });
}

/** With several names, `--from` holds a folder of each name. */
async function jobsOf(names: readonly string[], { data, from, allowCountMismatch }: PrepareFlags): Promise<PrepareJob[]> {
  const wanted = names.includes('all') ? dataSources : [...new Set(names)].map(dataSource);
  const hub = await hubOptionsFromEnvironment(process.env, homedir());
  return wanted.map(({ name }) => ({
    name,
    from: from === undefined ? null : resolve(wanted.length === 1 ? from : join(from, name)),
    folder: resolve(data, name),
    allowCountMismatch: allowCountMismatch ?? false,
    hub,
  }));
}

async function runJob(job: PrepareJob, signal: AbortSignal): Promise<PrepareOutcome> {
  const progress = createDataProgress(job.name, process.stderr, () => performance.now());
  try {
    return await prepareInProcess(job, { signal, onReport: progress.show });
  } finally {
    progress.stop();
  }
}

function describeOutcome({ name, folder }: PrepareJob, { manifest, peakMemoryBytes }: PrepareOutcome): string {
  const { questions, source, images, flags = {}, expected } = manifest;
  const flagged = Object.entries(flags).map(([flag, count]) => `${flag} ${count}`);
  return [
    `${name}: ${questions} questions from ${source?.rows ?? questions} rows`,
    `${images?.files ?? 0} pictures, ${sizeText(images?.bytes ?? 0)}`,
    ...(expected?.questions != null && expected.questions !== questions ? [`NOT THE PUBLISHED ${expected.questions}`] : []),
    flagged.length === 0 ? 'no flags' : `flags: ${flagged.join(', ')}`,
    `${sizeText(peakMemoryBytes)} of memory`,
    relative(process.cwd(), folder) || folder,
  ].join(' · ');
}
