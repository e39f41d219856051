// What all tools of a run share.
import type { HttpClient } from './http/client.js';
import type { Guard } from './http/guard.js';
import type { Budget } from './http/limits.js';
import type { PageParser } from './pages/page-parser.js';
import type { OperationContext } from './recording/recorded.js';

export interface Workshop extends OperationContext {
  readonly guard: Guard;
  readonly budget: Budget;
  readonly http: HttpClient;
  readonly parser: PageParser;
}

/** In a replay nothing is asked for live, so no key and no host is needed. */
export function asksLive({ recording }: Workshop): boolean {
  return recording.mode === 'live' || recording.mode === 'record';
}
