// A worker thread: loads the checkpoint into its own memory, then serves one request after the other.
import { parentPort, workerData } from 'node:worker_threads';
import { EngineError } from '../../errors.js';
import type { Image, TokenContext } from '../../types.js';
import type { CheckAbort } from './context-cache.js';
import { loadKernels } from './kernels.js';
import {
  CancelledError,
  type Reply,
  type Request,
  toWireError,
  type WireContext,
  type Work,
  type WorkerSettings,
} from './protocol.js';
import { Runner } from './runner.js';
import { loadWeights } from './weight-loader.js';

const port = parentPort;
if (port === null) throw new EngineError('this module runs in a worker thread only');

/** Pictures by trajectory and hash, kept until the trajectory is released. */
const pictures = new Map<string, Map<string, Image>>();

try {
  const runner = await createRunner(workerData as WorkerSettings);
  let queue = Promise.resolve();
  port.on('message', (request: Request) => {
    queue = queue.then(() => serve(runner, request));
  });
  send({ kind: 'ready' });
} catch (error) {
  send({ kind: 'failed', error: toWireError(error) });
}

async function createRunner(settings: WorkerSettings): Promise<Runner> {
  const kernels = await loadKernels();
  const weights = await loadWeights(settings.checkpoint, kernels);
  return new Runner(settings.checkpoint.config, weights, kernels, settings);
}

async function serve(runner: Runner, { call, work, cancelled }: Request): Promise<void> {
  const flag = new Int32Array(cancelled);
  const check: CheckAbort = () => {
    if (Atomics.load(flag, 0) !== 0) throw new CancelledError();
  };
  try {
    send({ kind: 'result', call, value: await perform(runner, work, check, call) });
  } catch (error) {
    send(error instanceof CancelledError ? { kind: 'cancelled', call } : { kind: 'error', call, error: toWireError(error) });
  }
}

async function perform(runner: Runner, work: Work, check: CheckAbort, call: number): Promise<unknown> {
  switch (work.verb) {
    case 'prefill':
      return runner.prefill(receive(work.context), check);
    case 'pin':
      return runner.pin(receive(work.context, new Map()), check);
    case 'score':
      return runner.score(receive(work.context), work.continuations, check);
    case 'generate':
      return runner.generate(receive(work.context), work.sampling, check, (token) => {
        if (work.streamed) send({ kind: 'token', call, token });
      });
    case 'release':
      pictures.delete(work.trajectory);
      return runner.release(work.trajectory);
  }
}

function receive(context: WireContext, known = picturesOf(context.trajectory)): TokenContext {
  const images = context.images.map(({ bytes, ...image }) => {
    if (bytes !== null) known.set(image.sha256, { ...image, bytes });
    const picture = known.get(image.sha256);
    if (picture === undefined) throw new EngineError('the bytes of an image never arrived', { where: image.sha256 });
    return picture;
  });
  return { ...context, images };
}

function picturesOf(trajectory: string): Map<string, Image> {
  const known = pictures.get(trajectory) ?? new Map<string, Image>();
  pictures.set(trajectory, known);
  return known;
}

function send(reply: Reply): void {
  port?.postMessage(reply);
}
