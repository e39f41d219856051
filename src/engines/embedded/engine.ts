// The embedded engine: a Qwen3-VL checkpoint on this machine's CPU. Worker threads hold a copy of the weights each; a trajectory
// stays with one of them, where its keys and values are cached, so several trajectories run at once.
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { availableParallelism } from 'node:os';
import { basename, resolve } from 'node:path';
import { EngineError } from '../../errors.js';
import type { Engine, EngineInfo, Generation, Scoring, TokenContext, TokenLogprob, Usage } from '../../types.js';
import { type Checkpoint, openCheckpoint } from './checkpoint.js';
import { ADDRESSABLE_BYTES } from './memory.js';
import type { WireContext, Work } from './protocol.js';
import { WorkerThread } from './worker-thread.js';

const ENGINE_VERSION = '1';
const DEFAULT_WORKERS = 2;
const DEFAULT_CACHE_BYTES = 128_000_000;
/** Long enough for full speed, short enough that an abort is noticed soon. */
const DEFAULT_CHUNK_TOKENS = 256;

export interface EmbeddedOptions {
  /** Worker threads; by default two, or one on a single core. */
  readonly workers?: number;
  /** Positions that each worker caches over all its trajectories; by default what 128 MB hold, or one full context. */
  readonly maxCacheTokens?: number;
  /** Positions computed between two looks at the abort signal. */
  readonly chunkTokens?: number;
}

/** Checks the checkpoint, then starts the workers; throws a CheckpointError before any thread exists. */
export async function createEmbeddedEngine(directory: string, options: EmbeddedOptions = {}): Promise<Engine> {
  const checkpoint = await openCheckpoint(resolve(directory));
  const count = positive('workers', options.workers ?? Math.min(availableParallelism(), DEFAULT_WORKERS));
  const settings = {
    checkpoint,
    maxCacheTokens: positive('maxCacheTokens', options.maxCacheTokens ?? defaultCacheTokens(checkpoint)),
    chunkTokens: positive('chunkTokens', options.chunkTokens ?? DEFAULT_CHUNK_TOKENS),
  };
  const started = await Promise.allSettled(Array.from({ length: count }, () => WorkerThread.start(settings)));
  const workers = started.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []));
  const failure = started.find((result) => result.status === 'rejected');
  if (failure !== undefined) {
    await Promise.all(workers.map((worker) => worker.close()));
    throw failure.reason;
  }
  return engineOver(checkpoint, workers);
}

function positive(option: string, value: number): number {
  if (Number.isInteger(value) && value >= 1) return value;
  throw new EngineError(`${option} is no count`, { expected: 'a whole number, at least 1', found: `${value}` });
}

/** Half of what the weights leave is the most: a cache that grows exists twice for a moment. */
function defaultCacheTokens({ config, weightBytes }: Checkpoint): number {
  const { layers, keyValueHeads, headWidth, contextLength } = config.text;
  const bytesPerToken = layers * 2 * keyValueHeads * headWidth * 4;
  const wanted = Math.max(DEFAULT_CACHE_BYTES, contextLength * bytesPerToken);
  return Math.floor(Math.min(wanted, (ADDRESSABLE_BYTES - weightBytes) / 2) / bytesPerToken);
}

/** Where a trajectory lives, and the hashes of the pictures that its worker has already received. */
interface Home {
  readonly worker: WorkerThread;
  readonly sentImages: Set<string>;
}

function engineOver(checkpoint: Checkpoint, workers: readonly WorkerThread[]): Engine {
  const homes = new Map<string, Home>();
  let description: Promise<EngineInfo> | undefined;

  const homeOf = (trajectory: string): Home => {
    const known = homes.get(trajectory);
    if (known !== undefined) return known;
    const load = (worker: WorkerThread) => [...homes.values()].filter((home) => home.worker === worker).length;
    const worker = workers.reduce((least, other) => (load(other) < load(least) ? other : least));
    const home = { worker, sentImages: new Set<string>() };
    homes.set(trajectory, home);
    return home;
  };
  const callHome = <T>(
    context: TokenContext,
    work: (context: WireContext) => Work,
    signal?: AbortSignal,
    onToken?: (token: TokenLogprob) => void,
  ): Promise<T> => {
    signal?.throwIfAborted();
    const { worker, sentImages } = homeOf(context.trajectory);
    return worker.call<T>(work(toWire(context, sentImages)), signal, onToken);
  };

  return {
    describe() {
      description ??= describe(checkpoint);
      return description;
    },
    async prefill(context, { signal, shared } = {}) {
      if (shared !== true) return callHome<Usage>(context, (wire) => ({ verb: 'prefill', context: wire }), signal);
      const usages = await Promise.all(
        workers.map((worker) => worker.call<Usage>({ verb: 'pin', context: toWire(context, new Set()) }, signal)),
      );
      return usages[0] as Usage;
    },
    async score(context, continuations, { signal } = {}) {
      return callHome<Scoring>(context, (wire) => ({ verb: 'score', context: wire, continuations }), signal);
    },
    async generate(context, sampling, { signal, onToken } = {}) {
      const streamed = onToken !== undefined;
      return callHome<Generation>(context, (wire) => ({ verb: 'generate', context: wire, sampling, streamed }), signal, onToken);
    },
    async release(trajectory) {
      const home = homes.get(trajectory);
      homes.delete(trajectory);
      await home?.worker.call({ verb: 'release', trajectory });
    },
    async close() {
      homes.clear();
      await Promise.all(workers.map((worker) => worker.close()));
    },
  };
}

function toWire(context: TokenContext, sentImages: Set<string>): WireContext {
  const images = context.images.map(({ sha256, bytes, mediaType, width, height }) => {
    const known = sentImages.has(sha256);
    sentImages.add(sha256);
    return { sha256, bytes: known ? null : bytes, mediaType, width, height };
  });
  return { trajectory: context.trajectory, ids: context.ids, images, length: context.length };
}

async function describe({ directory, config, files }: Checkpoint): Promise<EngineInfo> {
  const hash = createHash('sha256');
  for (const file of files) {
    for await (const chunk of createReadStream(file)) hash.update(chunk as Buffer);
  }
  const { patchSize, mergeSize, minPixels, maxPixels } = config.pixels;
  return {
    engine: 'embedded',
    version: ENGINE_VERSION,
    model: basename(directory),
    weights: hash.digest('hex'),
    vocabularySize: config.text.vocabularySize,
    contextLength: config.text.contextLength,
    geometry: { patchSize, mergeSize, minPixels, maxPixels },
  };
}
