// Starts an SGLang server with the flags that matter to selection, waits until it computes, and stops it cleanly.
import { createServer } from 'node:net';
import { execa } from 'execa';
import { EngineUnavailableError } from '../../errors.js';
import { computeOneToken } from './connect.js';
import { HttpClient, readJson, type Surroundings } from './http.js';
import { REAL_SURROUNDINGS } from './surroundings.js';

export interface ServeOptions {
  /** Checkpoint folder or hub name. */
  readonly model: string;
  readonly port: number;
  /** Loopback unless said otherwise. */
  readonly host?: string;
  /** `python3` runs `-m sglang.launch_server`; give the interpreter of the environment that has SGLang. */
  readonly python?: string;
  /** `cpu` adds what a machine without a GPU needs. */
  readonly device?: 'gpu' | 'cpu';
  /** Appended last, so that they win. */
  readonly extraArguments?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly apiKey?: string;
  readonly adminKey?: string;
  /** Until the first computed token; loading a large checkpoint takes minutes. */
  readonly readyTimeoutMs?: number;
  /** Sees every line that the server writes. */
  readonly onLine?: (line: string) => void;
  readonly surroundings?: Surroundings;
  readonly signal?: AbortSignal;
}

export interface ServedEngine {
  readonly url: string;
  /** Resolves when the server has ended, however it did. */
  readonly ended: Promise<{ readonly exitCode: number | undefined; readonly lastLines: readonly string[] }>;
  /** Asks it to stop, and ends it by force after ten seconds. */
  stop(): Promise<void>;
}

const KEPT_LINES = 20;
const GRACE_MS = 10_000;
const POLL_MS = 500;
const DEFAULT_READY_TIMEOUT_MS = 900_000;

/** Prefix cache per token, large chunks, times in the replies, and prompts that are never re-tokenised. */
export function launchPlan(options: ServeOptions): {
  readonly arguments: string[];
  readonly environment: Record<string, string>;
} {
  const cpu = options.device === 'cpu';
  const flags: Record<string, string> = {
    '--model-path': options.model,
    '--host': options.host ?? '127.0.0.1',
    '--port': String(options.port),
    '--page-size': '1',
    '--random-seed': '0',
    ...(cpu
      ? {
          '--device': 'cpu',
          '--attention-backend': 'torch_native',
          '--mm-attention-backend': 'sdpa',
          '--sampling-backend': 'pytorch',
          '--grammar-backend': 'none',
          '--mem-fraction-static': '0.3',
          '--max-total-tokens': '60000',
        }
      : { '--chunked-prefill-size': '8192', '--mem-fraction-static': '0.8' }),
    ...(options.apiKey !== undefined && { '--api-key': options.apiKey }),
    ...(options.adminKey !== undefined && { '--admin-api-key': options.adminKey }),
  };
  const switches = ['--enable-metrics', ...(cpu ? ['--disable-overlap-schedule', '--skip-server-warmup'] : [])];
  return {
    arguments: ['-m', 'sglang.launch_server', ...Object.entries(flags).flat(), ...switches, ...(options.extraArguments ?? [])],
    environment: {
      SGLANG_MM_AVOID_RETOKENIZE: '1',
      SGLANG_VLM_CACHE_SIZE_MB: '2048',
      ...(cpu && { SGLANG_USE_CPU_ENGINE: '1' }),
      ...options.environment,
    },
  };
}

/** Another server on the port would answer in the new one's place, with weights of its own. */
async function requireFreePort(host: string, port: number): Promise<void> {
  const probe = createServer();
  const failed = await new Promise<NodeJS.ErrnoException | null>((resolve) => {
    probe.once('error', resolve).listen({ host, port }, () => resolve(null));
  });
  if (failed === null) await new Promise((resolve) => probe.close(resolve));
  if (failed?.code !== 'EADDRINUSE') return;
  throw new EngineUnavailableError('the port is taken', {
    where: `${host}:${port}`,
    expected: 'no server on it',
    remedy: 'Stop what listens there, or choose another port.',
  });
}

/** Resolves when the server has computed its first token; throws EngineUnavailableError with its last log lines otherwise. */
export async function serve(options: ServeOptions): Promise<ServedEngine> {
  const { host = '127.0.0.1', port, python = 'python3', surroundings = REAL_SURROUNDINGS } = options;
  const url = `http://${host}:${port}`;
  const plan = launchPlan(options);
  await requireFreePort(host, port);
  const subprocess = execa(python, plan.arguments, {
    env: plan.environment,
    stdin: 'ignore',
    all: true,
    buffer: false,
    reject: false,
    forceKillAfterDelay: GRACE_MS,
  });
  const lastLines: string[] = [];
  const reading = (async () => {
    for await (const line of subprocess.iterable({ from: 'all' })) {
      lastLines.push(line);
      if (lastLines.length > KEPT_LINES) lastLines.shift();
      options.onLine?.(line);
    }
  })();
  const ended = Promise.all([subprocess, reading.catch(() => undefined)]).then(([{ exitCode, originalMessage }]) => {
    if (lastLines.length === 0 && originalMessage) lastLines.push(originalMessage);
    return { exitCode, lastLines };
  });
  const stop = async (): Promise<void> => {
    subprocess.kill('SIGTERM');
    await ended;
  };
  try {
    await ready(url, options, surroundings, ended);
  } catch (error) {
    await stop();
    throw error;
  }
  return { url, ended, stop };
}

/** Polls until the information page answers, then computes a token: the page alone says nothing of the scheduler. */
async function ready(
  url: string,
  options: ServeOptions,
  surroundings: Surroundings,
  ended: ServedEngine['ended'],
): Promise<void> {
  const limitMs = options.readyTimeoutMs ?? DEFAULT_READY_TIMEOUT_MS;
  const deadline = surroundings.clock() + limitMs;
  const retry = { attempts: 1, baseDelayMs: 0, greatestDelayMs: 0, greatestRetryAfterMs: 0 };
  const http = new HttpClient({ url, surroundings, retry, ...(options.apiKey !== undefined && { apiKey: options.apiKey }) });
  let exit: Awaited<ServedEngine['ended']> | null = null;
  ended.then((end) => {
    exit = end;
  });
  const failure = (summary: string, lines: readonly string[]): EngineUnavailableError =>
    new EngineUnavailableError(summary, {
      where: url,
      found: `its last lines: ${lines.join(' | ') || '(none)'}`,
      remedy: 'See the log above.',
    });
  try {
    for (;;) {
      options.signal?.throwIfAborted();
      const end = exit as Awaited<ServedEngine['ended']> | null;
      if (end) throw failure(`the server ended before it was ready (exit code ${end.exitCode ?? 'none'})`, end.lastLines);
      const leftMs = deadline - surroundings.clock();
      if (leftMs <= 0)
        throw new EngineUnavailableError(`the server was not ready within ${limitMs} ms`, {
          where: url,
          remedy: 'Raise the time limit.',
        });
      const answers = await http
        .fetch({ method: 'GET', path: '/model_info', timeoutMs: Math.min(leftMs, 5_000), idempotent: true }, readJson)
        .then(
          () => true,
          () => false,
        );
      if (answers)
        return await Promise.race([
          firstToken(url, http, Math.max(1, deadline - surroundings.clock())),
          diesFirst(ended, failure),
        ]);
      await surroundings.sleep(POLL_MS, options.signal);
    }
  } finally {
    await http.close();
  }
}

async function firstToken(url: string, http: HttpClient, timeoutMs: number): Promise<void> {
  await computeOneToken(http, timeoutMs).catch((cause: unknown) => {
    const found = cause instanceof Error ? cause.message : String(cause);
    throw new EngineUnavailableError('the server answers but computes nothing', { where: url, found, cause });
  });
}

async function diesFirst(
  ended: ServedEngine['ended'],
  failure: (summary: string, lines: readonly string[]) => Error,
): Promise<never> {
  const { exitCode, lastLines } = await ended;
  throw failure(`the server ended before it was ready (exit code ${exitCode ?? 'none'})`, lastLines);
}
