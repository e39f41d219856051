// The one retry policy of the SGLang client, as pure decisions: what may be sent again, and after how long.

export interface RetryPolicy {
  /** Sends of one request in all. */
  readonly attempts: number;
  readonly baseDelayMs: number;
  readonly greatestDelayMs: number;
  /** A longer Retry-After ends the request instead of being waited for. */
  readonly greatestRetryAfterMs: number;
}

export const DEFAULT_RETRY: RetryPolicy = { attempts: 4, baseDelayMs: 250, greatestDelayMs: 8_000, greatestRetryAfterMs: 60_000 };

/** How one send ended. `unreached`: the request never left; `dropped`: the connection broke and the outcome is unknown. */
export type Outcome<T> =
  | {
      readonly kind: 'reply';
      readonly status: number;
      readonly retryAfterMs: number | null;
      readonly value: T | null;
      readonly text: string;
    }
  | { readonly kind: 'unreached'; readonly error: Error }
  | { readonly kind: 'dropped'; readonly error: Error }
  | { readonly kind: 'timeout'; readonly alive: boolean };

/** A refusal before any work, for whatever request. */
const REFUSED = new Set([429, 503]);
/** The work may or may not have been done. */
const BROKEN = new Set([500, 502, 504]);

/**
 * Milliseconds to wait before sending again, or null when the outcome stands. `sent` counts sends so far (>= 1).
 * A timeout stands: whatever hung once would hang again, and the caller's limit would be exceeded by multiples.
 */
export function retryDelayMs(
  outcome: Outcome<unknown>,
  sent: number,
  request: { readonly idempotent: boolean; readonly retryServerErrors: boolean },
  policy: RetryPolicy,
  random: () => number,
): number | null {
  if (sent >= policy.attempts || outcome.kind === 'timeout') return null;
  const backoff = Math.min(policy.greatestDelayMs, policy.baseDelayMs * 2 ** (sent - 1)) * (0.5 + random() / 2);
  if (outcome.kind === 'unreached') return backoff;
  if (outcome.kind === 'dropped') return request.idempotent ? backoff : null;
  if (REFUSED.has(outcome.status)) {
    const wanted = outcome.retryAfterMs ?? 0;
    return wanted > policy.greatestRetryAfterMs ? null : Math.max(backoff, wanted);
  }
  // A second 500 to the same request will be followed by a third: one fresh connection is enough.
  const again = BROKEN.has(outcome.status) && request.idempotent && request.retryServerErrors && sent === 1;
  return again ? backoff : null;
}

/** Retry-After in milliseconds: seconds, or an HTTP date relative to `nowMs` (Unix time). */
export function parseRetryAfter(header: string | undefined, nowMs: number): number | null {
  if (header === undefined) return null;
  if (/^\s*\d+(\.\d+)?\s*$/.test(header)) return Number(header) * 1000;
  const date = Date.parse(header);
  return Number.isNaN(date) ? null : Math.max(0, date - nowMs);
}
