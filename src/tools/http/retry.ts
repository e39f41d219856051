// Waiting before another try: what the server asks for, else an exponential delay with jitter, both capped.
//   delay_n = min(cap, base 2^n) (1/2 + u/2), u uniform in [0, 1)

export interface RetryPolicy {
  /** Tries in all, the first included. */
  readonly attempts: number;
  readonly baseDelayMs: number;
  readonly maxDelayMs: number;
  /** A server that asks for more patience than this has failed. */
  readonly maxRetryAfterMs: number;
}

export const defaultRetryPolicy: RetryPolicy = { attempts: 4, baseDelayMs: 500, maxDelayMs: 8_000, maxRetryAfterMs: 60_000 };

const PASSING = new Set([408, 425, 429, 500, 502, 503, 504]);

export function isPassing(status: number): boolean {
  return PASSING.has(status);
}

/** Milliseconds until the next try; null when the server asks for longer than the policy allows. */
export function retryDelayMs(
  retry: number,
  retryAfter: string | undefined,
  policy: RetryPolicy,
  now: number,
  random: () => number,
): number | null {
  const asked = retryAfter === undefined ? null : parseRetryAfter(retryAfter, now);
  if (asked !== null) return asked > policy.maxRetryAfterMs ? null : asked;
  return Math.min(policy.maxDelayMs, policy.baseDelayMs * 2 ** retry) * (0.5 + random() / 2);
}

/** Seconds or an HTTP date; null for anything else. */
function parseRetryAfter(value: string, now: number): number | null {
  if (/^\d+$/.test(value.trim())) return Number(value) * 1000;
  const date = Date.parse(value);
  return Number.isNaN(date) ? null : Math.max(0, date - now);
}
