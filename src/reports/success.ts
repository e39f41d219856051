// Success and the ledger behind it: every planned question is scored, an error of a named kind, or was not run.
import { EPISODE_STATUSES, type Episode, type EpisodeStatus, isErrorStatus } from '../evaluation/records.js';
import { type Rate, rate } from '../evaluation/statistics.js';

/** Why a question has no verdict. */
export type Unscored = 'error' | 'tool-error' | 'cancelled' | 'judge-error' | 'no-gold';

/** planned = scored + the sum of unscored + notRun. */
export interface Ledger {
  readonly planned: number;
  readonly scored: number;
  readonly unscored: Readonly<Record<Unscored, number>>;
  readonly notRun: number;
}

interface TypeSuccess extends Rate {
  /** Questions of the type without a verdict; not in n. */
  readonly unscored: number;
}

export interface Success {
  readonly overall: Rate;
  /** Types in alphabetical order. */
  readonly byType: Readonly<Record<string, TypeSuccess>>;
}

interface Counts {
  successes: number;
  scored: number;
  unscored: number;
}

export function createSuccess(planned: number) {
  const types = new Map<string, Counts>();
  const unscored: Record<Unscored, number> = { error: 0, 'tool-error': 0, cancelled: 0, 'judge-error': 0, 'no-gold': 0 };
  const stops = new Map<EpisodeStatus, number>();
  const total = (key: keyof Counts): number => [...types.values()].reduce((sum, counts) => sum + counts[key], 0);

  return {
    add(episode: Episode): void {
      const counts = types.get(episode.type) ?? { successes: 0, scored: 0, unscored: 0 };
      types.set(episode.type, counts);
      stops.set(episode.status, (stops.get(episode.status) ?? 0) + 1);
      const reason = whyUnscored(episode);
      if (reason === null) counts.scored++;
      else {
        counts.unscored++;
        unscored[reason]++;
      }
      if (episode.correct) counts.successes++;
    },
    ledger: (): Ledger => ({
      planned,
      scored: total('scored'),
      unscored: { ...unscored },
      notRun: planned - total('scored') - total('unscored'),
    }),
    success(): Success {
      const byType = [...types]
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([type, counts]) => [type, { ...rate(counts.successes, counts.scored), unscored: counts.unscored }] as const);
      return { overall: rate(total('successes'), total('scored')), byType: Object.fromEntries(byType) };
    },
    /** Questions per status, in a fixed order, those that occurred. */
    stops(): Readonly<Partial<Record<EpisodeStatus, number>>> {
      return Object.fromEntries(EPISODE_STATUSES.flatMap((status) => (stops.has(status) ? [[status, stops.get(status)]] : [])));
    },
  };
}

function whyUnscored({ status, correct, error }: Episode): Unscored | null {
  if (correct !== null) return null;
  if (isErrorStatus(status)) return status as 'error' | 'tool-error' | 'cancelled';
  return error === null ? 'no-gold' : 'judge-error';
}
