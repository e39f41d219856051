// Preparing in a process of its own: the memory that a table takes goes back to the system, and a crash there is only an error here.
import { type ChildProcess, fork } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { DownloadProgress, HubOptions } from '../data/hub/options.js';
import type { PrepareEvent } from '../data/prepare.js';
import type { PreparedManifest } from '../data/prepared.js';
import { DataError, SsrError, UsageError } from '../errors.js';

/** Plain data, since it travels as a message. */
export interface PrepareJob {
  readonly name: string;
  /** The user's own files; null downloads them. */
  readonly from: string | null;
  readonly folder: string;
  readonly allowCountMismatch: boolean;
  readonly hub: Omit<HubOptions, 'onProgress' | 'onWait' | 'signal'>;
}

export type PrepareReport =
  | { readonly kind: 'download'; readonly progress: DownloadProgress }
  /** Another process holds this file or folder. */
  | { readonly kind: 'wait'; readonly for: string }
  | { readonly kind: 'event'; readonly event: Exclude<PrepareEvent, { kind: 'wait' }> }
  | { readonly kind: 'done'; readonly manifest: PreparedManifest; readonly peakMemoryBytes: number }
  | { readonly kind: 'failed'; readonly error: { readonly name: string; readonly message: string } }
  | { readonly kind: 'aborted' };

export type PrepareOrder = { readonly kind: 'prepare'; readonly job: PrepareJob } | { readonly kind: 'abort' };

export interface PrepareOutcome {
  readonly manifest: PreparedManifest;
  readonly peakMemoryBytes: number;
}

const mostMsToStop = 20_000;

/**
 * Rejects with what preparing threw, with the signal's reason after an abort (nothing half-written is left), and with DataError when
 * the process dies.
 */
export async function prepareInProcess(
  job: PrepareJob,
  options: { readonly signal: AbortSignal; readonly onReport: (report: PrepareReport) => void },
): Promise<PrepareOutcome> {
  const { signal, onReport } = options;
  signal.throwIfAborted();
  const child = startChild();
  const abort = (): void => {
    child.send({ kind: 'abort' } satisfies PrepareOrder, () => undefined);
    // Decoding a row group cannot be interrupted; what takes longer is stuck.
    setTimeout(() => child.kill('SIGKILL'), mostMsToStop).unref();
  };
  signal.addEventListener('abort', abort);
  try {
    return await new Promise<PrepareOutcome>((resolve, reject) => {
      child.once('error', (cause) => reject(new DataError('the preparing process cannot be started', { cause })));
      child.once('exit', (code, killer) => reject(died(job, code, killer)));
      child.on('message', (report: PrepareReport) => {
        onReport(report);
        if (report.kind === 'done') resolve({ manifest: report.manifest, peakMemoryBytes: report.peakMemoryBytes });
        if (report.kind === 'failed') reject(revive(report.error));
        if (report.kind === 'aborted') reject(signal.reason);
      });
      child.send({ kind: 'prepare', job } satisfies PrepareOrder);
    });
  } catch (error) {
    if (child.killed) await rm(`${job.folder}.preparing`, { recursive: true, force: true });
    throw error;
  } finally {
    signal.removeEventListener('abort', abort);
    if (child.connected) child.disconnect();
  }
}

/** Run from sources (tsx, vitest), the process needs a loader for TypeScript first; compiled, it is a plain module. */
function startChild(): ChildProcess {
  if (!import.meta.url.endsWith('.ts')) return fork(fileURLToPath(new URL('./prepare-child.js', import.meta.url)));
  const loader = pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href;
  return fork(fileURLToPath(new URL('./prepare-child.ts', import.meta.url)), { execArgv: ['--import', loader] });
}

function revive({ name, message }: { readonly name: string; readonly message: string }): Error {
  if (name === 'UsageError') return new UsageError(message);
  if (name === 'DataError') return new DataError(message);
  return name === 'UnexpectedError' ? new Error(message) : new SsrError(message);
}

function died({ name }: PrepareJob, code: number | null, killer: NodeJS.Signals | null): DataError {
  return new DataError('the preparing process died', {
    where: name,
    found: killer ?? `exit code ${code}`,
    remedy:
      killer === 'SIGKILL'
        ? 'The system kills processes when memory runs out; docs/benchmarks.md says what tables need.'
        : 'Nothing half-written is used; run the command again.',
  });
}
