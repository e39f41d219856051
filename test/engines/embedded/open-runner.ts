// A runner on the test's own thread, so that tests can set chunk sizes and see caches without worker threads between.
import { openCheckpoint } from '../../../src/engines/embedded/checkpoint.js';
import { loadKernels } from '../../../src/engines/embedded/kernels.js';
import { Runner, type RunnerOptions } from '../../../src/engines/embedded/runner.js';
import { loadWeights } from '../../../src/engines/embedded/weight-loader.js';
import type { Sampling } from '../../../src/types.js';

export async function openRunner(directory: string, options: Partial<RunnerOptions> = {}): Promise<Runner> {
  const checkpoint = await openCheckpoint(directory);
  const kernels = await loadKernels();
  const weights = await loadWeights(checkpoint, kernels);
  return new Runner(checkpoint.config, weights, kernels, { maxCacheTokens: 8192, chunkTokens: 256, ...options });
}

export const neverAborted = (): void => {};

export function greedySampling(maxNewTokens: number, stopIds: readonly number[] = []): Sampling {
  return { maxNewTokens, temperature: 0, topP: 1, topK: 0, seed: 0, stopIds, bannedIds: [] };
}
