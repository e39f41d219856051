// Options of the SGLang engine, and the parts of it that only depend on them.
import type { BreakerPolicy } from './breaker.js';
import type { CallRecord } from './calls.js';
import type { Surroundings } from './http.js';
import type { ImageTransport } from './images.js';
import type { RetryPolicy } from './retry.js';

/**
 * Whether h_t is put into the cache before the candidates are scored. `auto` leaves out prefills of what is cached but for
 * a few tokens; `off` is Algorithm 1 to the letter: only s is prefilled.
 */
export type PrefillMode = 'auto' | 'on' | 'off';

export interface SglangOptions {
  /** Addresses of servers with the same model and weights. */
  readonly urls: readonly string[];
  /** Local folder with the served model's config.json and preprocessor_config.json. */
  readonly modelFolder: string;
  readonly apiKey?: string;
  readonly adminKey?: string;
  readonly prefill?: PrefillMode;
  readonly imageTransport?: ImageTransport;
  /** Most bytes of encoded pictures kept in memory. */
  readonly imageCacheBytes?: number;
  /** Namespace of the servers' prefix caches, one a run: a run never profits from another's cache. */
  readonly isolationKey: string;
  /** Requests in flight per server. */
  readonly requestLimit?: number;
  /** Limit of a prefill or scoring request; the first picture a server sees can take it many seconds. */
  readonly requestTimeoutMs?: number;
  readonly generateTimeoutMs?: number;
  /** Limit of the checks before the first question. */
  readonly preflightTimeoutMs?: number;
  readonly retry?: RetryPolicy;
  readonly breaker?: BreakerPolicy;
  readonly surroundings?: Surroundings;
  /** Told of every call that succeeded, with what it cost. */
  readonly onCall?: (call: CallRecord) => void;
}

export const DEFAULTS = {
  prefill: 'auto',
  imageTransport: { kind: 'data' },
  imageCacheBytes: 256 * 2 ** 20,
  requestLimit: 64,
  requestTimeoutMs: 120_000,
  generateTimeoutMs: 600_000,
  preflightTimeoutMs: 60_000,
} as const satisfies Partial<SglangOptions>;
