// One worker thread seen from outside: calls become promises, and a thread that dies fails all calls it still owes.
import { Worker } from 'node:worker_threads';
import { EngineError } from '../../errors.js';
import type { TokenLogprob } from '../../types.js';
import { fromWireError, type Reply, type Request, type Work, type WorkerSettings } from './protocol.js';

interface Pending {
  readonly resolve: (value: unknown) => void;
  readonly reject: (reason: unknown) => void;
  readonly signal: AbortSignal | undefined;
  readonly settle: () => void;
  readonly onToken: ((token: TokenLogprob) => void) | undefined;
}

export class WorkerThread {
  readonly #worker: Worker;
  readonly #pending = new Map<number, Pending>();
  #calls = 0;
  #death: EngineError | null = null;

  private constructor(worker: Worker) {
    this.#worker = worker;
    worker.on('message', (reply: Reply) => this.#receive(reply));
    worker.on('error', (cause) => this.#die(new EngineError('a worker thread failed', { found: cause.message, cause })));
    worker.on('exit', (code) => this.#die(new EngineError('a worker thread ended', { found: `exit code ${code}` })));
    // An idle thread must not keep the process alive; one that owes a reply must.
    worker.unref();
  }

  /** Resolves once the checkpoint is loaded; rejects with what the loading threw. */
  static async start(settings: WorkerSettings): Promise<WorkerThread> {
    const worker = createWorker(settings);
    const reply = await new Promise<Reply>((resolve, reject) => {
      worker.once('message', resolve);
      worker.once('error', reject);
      worker.once('exit', (code) =>
        reject(new EngineError('a worker thread ended while starting', { found: `exit code ${code}` })),
      );
    });
    // Of these events only: Node listens to others on the same object.
    for (const event of ['message', 'error', 'exit']) worker.removeAllListeners(event);
    if (reply.kind === 'ready') return new WorkerThread(worker);
    await worker.terminate();
    throw reply.kind === 'failed' ? fromWireError(reply.error) : new EngineError('a worker thread spoke out of turn');
  }

  /** Queues work behind what the thread already has. Rejects with the signal's reason once the thread notices an abort. */
  call<T>(work: Work, signal?: AbortSignal, onToken?: (token: TokenLogprob) => void): Promise<T> {
    if (this.#death !== null) return Promise.reject(this.#death);
    if (signal?.aborted) return Promise.reject(signal.reason);
    const call = this.#calls++;
    const cancelled = new SharedArrayBuffer(4);
    const cancel = (): void => {
      Atomics.store(new Int32Array(cancelled), 0, 1);
    };
    signal?.addEventListener('abort', cancel, { once: true });
    return new Promise<unknown>((resolve, reject) => {
      const settle = (): void => signal?.removeEventListener('abort', cancel);
      this.#pending.set(call, { resolve, reject, signal, settle, onToken });
      this.#worker.ref();
      this.#worker.postMessage({ call, work, cancelled } satisfies Request);
    }) as Promise<T>;
  }

  async close(): Promise<void> {
    this.#die(new EngineError('the engine was closed'));
    await this.#worker.terminate();
  }

  #receive(reply: Reply): void {
    if (reply.kind === 'ready' || reply.kind === 'failed') return;
    const pending = this.#pending.get(reply.call);
    if (pending === undefined) return;
    if (reply.kind === 'token') {
      pending.onToken?.(reply.token);
      return;
    }
    this.#pending.delete(reply.call);
    if (this.#pending.size === 0) this.#worker.unref();
    pending.settle();
    if (reply.kind === 'result') pending.resolve(reply.value);
    else if (reply.kind === 'error') pending.reject(fromWireError(reply.error));
    else pending.reject(pending.signal?.reason);
  }

  #die(reason: EngineError): void {
    this.#death ??= reason;
    for (const pending of this.#pending.values()) {
      pending.settle();
      pending.reject(this.#death);
    }
    this.#pending.clear();
  }
}

/** Run from sources (tsx, vitest), the thread needs a loader for TypeScript first; compiled, it is a plain module. */
function createWorker(settings: WorkerSettings): Worker {
  if (!import.meta.url.endsWith('.ts')) return new Worker(new URL('./worker.js', import.meta.url), { workerData: settings });
  const module = JSON.stringify(new URL('./worker.ts', import.meta.url).href);
  const bootstrap = `import('tsx/esm/api').then(({ register }) => { register(); return import(${module}); });`;
  return new Worker(bootstrap, { eval: true, workerData: settings });
}
