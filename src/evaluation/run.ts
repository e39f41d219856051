// A run: many questions at once, each record handed out as it ends.
import { setMaxListeners } from 'node:events';
import type { SsrError } from '../errors.js';
import type { Benchmark } from '../types.js';
import { type EpisodeDependencies, type EpisodeOutcome, runEpisode } from './episode.js';
import type { Episode } from './records.js';

export interface RunOptions extends EpisodeDependencies {
  readonly entries: Benchmark['entries'];
  /** Questions in flight. */
  readonly concurrency: number;
  /** Sees each record; a reason to stop ends the run. */
  readonly breaker: (episode: Episode) => SsrError | null;
  /** Once aborted, no further question starts; those in flight end normally. */
  readonly drain?: AbortSignal;
}

/**
 * Yields one outcome per question in the order in which they end. The system prompt is prefilled once, before the first
 * question, in every place that will serve one. Throws when that first call fails, and the breaker's reason once the
 * questions in flight have been cancelled and yielded.
 */
export async function* runQuestions(options: RunOptions): AsyncGenerator<EpisodeOutcome, void> {
  const { agent, entries, concurrency, breaker, drain } = options;
  const halt = new AbortController();
  const signal = options.signal ? AbortSignal.any([options.signal, halt.signal]) : halt.signal;
  // Every call of every question in flight listens to it.
  setMaxListeners(0, signal);
  if (entries.length > 0) await prefillSystem(agent);
  const running = new Map<string, Promise<EpisodeOutcome>>();
  const waiting = entries[Symbol.iterator]();
  const startNext = (): void => {
    if (signal.aborted || drain?.aborted) return;
    const next = waiting.next();
    if (!next.done) running.set(next.value.id, runEpisode(next.value, { ...options, signal }));
  };
  for (let i = 0; i < concurrency; i++) startNext();
  let reason: SsrError | null = null;
  while (running.size > 0) {
    const outcome = await Promise.race(running.values());
    running.delete(outcome.episode.id);
    reason ??= breaker(outcome.episode);
    if (reason) halt.abort(reason);
    startNext();
    yield outcome;
  }
  if (reason) throw reason;
}

async function prefillSystem({ engine, systemIds: ids }: RunOptions['agent']): Promise<void> {
  await engine.prefill({ trajectory: 'system', ids, images: [], length: ids.length }, { shared: true });
}
