// Resuming a run: the same run or none at all, good rows kept, rows without a result owed again, a torn last line owed again.
import { isDeepStrictEqual } from 'node:util';
import { UsageError } from '../errors.js';
import type { Episode } from './records.js';

/** What makes a run the run it is: two runs with equal identities may share a folder. */
export type Identity = Readonly<Record<string, unknown>>;

/** Throws UsageError naming the first field in which a folder's run differs from the one that wants to resume it. */
export function requireSameRun(found: Identity, wanted: Identity, where: string, parent = ''): void {
  for (const key of new Set([...Object.keys(wanted), ...Object.keys(found)])) {
    const [was, is] = [found[key], wanted[key]];
    if (isDeepStrictEqual(was, is)) continue;
    if (isObject(was) && isObject(is)) requireSameRun(was, is, where, `${parent}${key}.`);
    throw new UsageError(`holds another run: ${parent}${key} differs`, {
      where,
      expected: brief(is),
      found: brief(was),
      remedy: 'Name another folder with --output, or start this one again with --fresh.',
    });
  }
}

/** Whether a row stands, or its question is owed again: surprises and interruptions always are, failed tools and judges on request. */
export function isSettled({ status, error }: Episode, retryErrors: boolean): boolean {
  if (status === 'error' || status === 'cancelled') return false;
  return !(retryErrors && (status === 'tool-error' || error !== null));
}

function isObject(value: unknown): value is Identity {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function brief(value: unknown): string {
  const text = JSON.stringify(value) ?? 'nothing';
  return text.length > 80 ? `${text.slice(0, 77)}…` : text;
}
