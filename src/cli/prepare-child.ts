// The process that prepares one data set: it gets a job as a message, reports as it goes, and ends with its parent.
import { dataSource } from '../../benchmarks/registry.js';
import type { DownloadProgress } from '../data/hub/options.js';
import { type PrepareEvent, prepare } from '../data/prepare.js';
import type { PreparedManifest } from '../data/prepared.js';
import { folderFiles, repositoryFiles } from '../data/source-files.js';
import { SsrError } from '../errors.js';
import type { PrepareJob, PrepareOrder, PrepareReport } from './prepare-process.js';

/** A download reports with every piece that arrives; nobody reads faster than this. */
const reportEveryMs = 200;

const abort = new AbortController();

// A terminal interrupts parent and child alike; the parent decides what it means.
for (const name of ['SIGINT', 'SIGTERM'] as const) process.on(name, () => undefined);
process.on('disconnect', () => abort.abort());
process.on('message', (order: PrepareOrder) => {
  if (order.kind === 'abort') abort.abort();
  else void run(order.job);
});

async function run(job: PrepareJob): Promise<void> {
  try {
    const manifest = await prepareJob(job);
    // Linux gives kilobytes.
    report({ kind: 'done', manifest, peakMemoryBytes: 1024 * process.resourceUsage().maxRSS });
  } catch (error) {
    report(abort.signal.aborted ? { kind: 'aborted' } : { kind: 'failed', error: describe(error) });
  }
}

async function prepareJob({ name, from, folder, allowCountMismatch, hub }: PrepareJob): Promise<PreparedManifest> {
  const source = dataSource(name);
  const { signal } = abort;
  const onWait = (file: string): void => report({ kind: 'wait', for: file });
  const files =
    from === null
      ? await repositoryFiles(source.repository, source.pins, { ...hub, signal, onWait, onProgress: throttled() })
      : await folderFiles(from);
  return prepare(source, files, { folder, allowCountMismatch, signal, onEvent: reportEvent });
}

function reportEvent(event: PrepareEvent): void {
  report(event.kind === 'wait' ? { kind: 'wait', for: event.folder } : { kind: 'event', event });
}

/** The end of a file is always told. */
function throttled(): (progress: DownloadProgress) => void {
  let last = Number.NEGATIVE_INFINITY;
  return (progress) => {
    const now = performance.now();
    if (now - last < reportEveryMs && progress.receivedBytes !== progress.totalBytes) return;
    last = now;
    report({ kind: 'download', progress });
  };
}

/** Refusals of the system (no space, no permission) are the data's trouble, with the system's own words. */
function describe(error: unknown): { name: string; message: string } {
  const message = error instanceof Error ? error.message : String(error);
  if (error instanceof SsrError) return { name: error.name, message };
  const system = error instanceof Error && 'syscall' in error;
  return system ? { name: 'DataError', message } : { name: 'UnexpectedError', message: (error as Error).stack ?? message };
}

/** Gone parents are told nothing. */
function report(message: PrepareReport): void {
  if (process.connected) process.send?.(message, undefined, undefined, () => undefined);
}
