// What went wrong, by message: a run of thousands of questions fails in a handful of ways.
import { type Episode, isErrorStatus } from '../evaluation/records.js';

export interface ErrorCount {
  readonly kind: string;
  /** That of the first question. */
  readonly message: string;
  readonly firstId: string;
  readonly questions: number;
}

/** Ways of failing that are told apart; further ones are counted by kind. */
const MOST_MESSAGES = 20;

export function createErrors() {
  const counts = new Map<string, { kind: string; message: string; firstId: string; questions: number }>();
  return {
    add({ id, status, error, reason }: Episode): void {
      if (status === 'cancelled' || (error === null && !isErrorStatus(status))) return;
      const { kind, message } = error ?? { kind: status, message: reason ?? '' };
      const known = counts.get(`${kind} ${message}`) ?? (counts.size < MOST_MESSAGES ? undefined : counts.get(kind));
      if (known) known.questions++;
      else {
        const key = counts.size < MOST_MESSAGES ? `${kind} ${message}` : kind;
        counts.set(key, { kind, message, firstId: id, questions: 1 });
      }
    },
    /** Most frequent first. */
    result: (): ErrorCount[] => [...counts.values()].map((count) => ({ ...count })).sort((a, b) => b.questions - a.questions),
  };
}
