// How requests to a server fail, as errors in one line: the address, the status, the server's own words, and what to do.
import { EngineError, EngineUnavailableError } from '../../errors.js';
import { errorMessage } from './protocol.js';
import type { Outcome } from './retry.js';

const UNREACHED = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'UND_ERR_CONNECT_TIMEOUT']);
/** What to do about refusals whose own words do not say it. */
const REMEDIES: readonly (readonly [RegExp, string])[] = [
  [/(?:image|video) count \d+ exceeds limit|at most \d+ image/i, 'Start the server with a higher --limit-mm-data-per-request.'],
  [
    /context length/i,
    "Give the run the served model's folder and fewer new tokens, or start the server with a longer --context-length.",
  ],
  [/out of memory/i, 'Start the server with a lower --mem-fraction-static or --chunked-prefill-size.'],
];
const START = 'Is the server running? `ssr serve` starts one; --engine-url names it.';

/** The error for a reply that is none: 429 and 503 mean a server that cannot serve, everything else a request it refused. */
export function refusalError(
  where: string,
  { status, text, attempts }: { readonly status: number; readonly text: string; readonly attempts: number },
): EngineError {
  const tries = attempts > 1 ? ` (sent ${attempts} times)` : '';
  const found = `${status} ${errorMessage(text) || '(empty body)'}${tries}`;
  if (status === 429 || status === 503) return new EngineUnavailableError('the server refused the request', { where, found });
  if (status === 401 || status === 403) {
    return new EngineError('the server wants a key', {
      where,
      found,
      remedy: 'Set the API key (and the admin key, if it has one).',
    });
  }
  const remedy = REMEDIES.find(([message]) => message.test(text))?.[1];
  return new EngineError('the server rejected the request', { where, found, ...(remedy !== undefined && { remedy }) });
}

/** The error for a request that got no reply at all. */
export function failureError(
  where: string,
  outcome: Exclude<Outcome<unknown>, { kind: 'reply' }>,
  timeoutMs: number,
  attempts: number,
): EngineError {
  const tries = attempts > 1 ? ` (sent ${attempts} times)` : '';
  if (outcome.kind === 'timeout') {
    const facts = {
      where,
      expected: `an answer within ${Math.round(timeoutMs)} ms`,
      found: 'none; the request was aborted',
    };
    return outcome.alive
      ? new EngineError('the server lives but did not answer', { ...facts, remedy: 'Raise the time limit, or see its log.' })
      : new EngineUnavailableError('the server does not answer', { ...facts, remedy: START });
  }
  const { error } = outcome;
  const summary = outcome.kind === 'unreached' ? 'cannot reach the server' : 'the connection broke before an answer';
  return new EngineUnavailableError(summary, { where, found: `${describe(error)}${tries}`, remedy: START, cause: error });
}

/** What a thrown error of the network says about the request. Errors of our own pass through. */
export function networkOutcome(error: unknown): Outcome<never> {
  if (error instanceof EngineError) throw error;
  const failure = error instanceof Error ? error : new Error(String(error));
  return { kind: UNREACHED.has(codeOf(failure)) ? 'unreached' : 'dropped', error: failure };
}

/** Code and message. */
export function describe(error: Error): string {
  const code = codeOf(error);
  const message = error.message || error.constructor.name;
  return code === '' || message.includes(code) ? message : `${code} ${message}`;
}

/** Node reports a refused connection to several addresses as one AggregateError. */
function codeOf(error: Error): string {
  const inner = error instanceof AggregateError ? (error.errors[0] as NodeJS.ErrnoException) : (error as NodeJS.ErrnoException);
  return inner?.code ?? '';
}
