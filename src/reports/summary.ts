// summary.json, computed one record at a time, so that a run of any length keeps only counts and times in memory.
import { type Episode, type EpisodeStatus, isErrorStatus } from '../evaluation/records.js';
import type { LibraryEntry } from '../types.js';
import { createErrors, type ErrorCount } from './errors.js';
import { createLatency, type LatencySummary, type Throughput } from './latency.js';
import { createSelection, type SelectionSummary } from './selection.js';
import { createSuccess, type Ledger, type Success } from './success.js';
import { createWork, type WorkSummary } from './work.js';

export interface SummaryOptions {
  /** Questions of the plan, run or not. */
  readonly planned: number;
  /** The library, in scoring order. */
  readonly candidates: readonly Pick<LibraryEntry, 'id' | 'expectedActions'>[];
}

export interface Summary {
  readonly schema: 1;
  readonly questions: Ledger;
  readonly success: Success;
  readonly errors: readonly ErrorCount[];
  readonly stops: Readonly<Partial<Record<EpisodeStatus, number>>>;
  /** From here on: questions that ended without an error, one population for every figure. */
  readonly selection: SelectionSummary;
  readonly latency: LatencySummary;
  readonly throughput: Throughput;
  readonly work: WorkSummary;
}

export interface SummaryAccumulator {
  add(episode: Episode): void;
  result(): Summary;
}

export function createSummary({ planned, candidates }: SummaryOptions): SummaryAccumulator {
  const success = createSuccess(planned);
  const errors = createErrors();
  const selection = createSelection(candidates);
  const latency = createLatency();
  const work = createWork();
  return {
    add(episode) {
      success.add(episode);
      errors.add(episode);
      if (isErrorStatus(episode.status)) return;
      for (const part of [selection, latency, work]) part.add(episode);
    },
    result: () => ({
      schema: 1,
      questions: success.ledger(),
      success: success.success(),
      errors: errors.result(),
      stops: success.stops(),
      selection: selection.result(),
      latency: latency.latency(),
      throughput: latency.throughput(),
      work: work.result(),
    }),
  };
}
