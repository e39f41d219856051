// A run: many questions at once, each record handed out as it ends.
import pLimit from 'p-limit';
import type { Benchmark } from '../types.js';
import { type EpisodeDependencies, type EpisodeOutcome, runEpisode } from './episode.js';

export interface RunOptions extends EpisodeDependencies {
  readonly entries: Benchmark['entries'];
  /** Questions in flight. */
  readonly concurrency: number;
  /** Once aborted, no further question starts; those in flight end normally. */
  readonly drain?: AbortSignal;
}

/**
 * Yields one outcome per question in the order in which they end. The system prompt is prefilled once, before the first
 * question, in every place that will serve one. Throws only when that first call fails.
 */
export async function* runQuestions(options: RunOptions): AsyncGenerator<EpisodeOutcome, void> {
  const { agent, entries, concurrency, signal, drain } = options;
  await prefillSystem(agent);
  const limit = pLimit(concurrency);
  const running = new Map<string, Promise<EpisodeOutcome>>();
  const waiting = entries[Symbol.iterator]();
  const startNext = (): void => {
    const next = signal?.aborted || drain?.aborted ? undefined : waiting.next();
    if (next === undefined || next.done) return;
    running.set(
      next.value.id,
      limit(() => runEpisode(next.value, options)),
    );
  };
  for (let i = 0; i < concurrency; i++) startNext();
  while (running.size > 0) {
    const outcome = await Promise.race(running.values());
    running.delete(outcome.episode.id);
    startNext();
    yield outcome;
  }
}

async function prefillSystem({ engine, systemIds: ids }: RunOptions['agent']): Promise<void> {
  await engine.prefill({ trajectory: 'system', ids, images: [], length: ids.length }, { shared: true });
}
