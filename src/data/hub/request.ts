// One HTTP request with redirects followed by hand, so that the token never leaves the host it belongs to.
import { setTimeout as sleep } from 'node:timers/promises';
import { type Dispatcher, request as send } from 'undici';
import { DataError } from '../../errors.js';
import type { HubOptions } from './options.js';
import { pageUrl, type Repository } from './repository.js';

export type Response = Dispatcher.ResponseData;

export interface HubRequest {
  readonly method: 'GET' | 'HEAD';
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Whether to go on to other hosts; headers of interest to a HEAD stand in the answer of the first host. */
  readonly followToOtherHosts: boolean;
}

/** The connection, not the data, is at fault: worth another try. */
export class ConnectionFault extends Error {
  readonly retryAfterMs: number | null;

  constructor(message: string, retryAfterMs: number | null = null, cause?: unknown) {
    super(message, { cause });
    this.retryAfterMs = retryAfterMs;
  }
}

const redirectStatuses = new Set([301, 302, 303, 307, 308]);
const mostRedirects = 10;

/** Throws ConnectionFault when the server cannot be reached; gives back any status but a redirect that it follows. */
export async function hubRequest(request: HubRequest, options: HubOptions): Promise<Response> {
  const home = new URL(options.endpoint).origin;
  let url = new URL(request.url);
  for (let hops = 0; hops <= mostRedirects; hops++) {
    const authorization = url.origin === home && options.token ? { authorization: `Bearer ${options.token}` } : {};
    const response = await attempt(url, request, { ...request.headers, ...authorization }, options);
    const location = headerOf(response, 'location');
    if (!redirectStatuses.has(response.statusCode) || location === null) return response;
    const next = new URL(location, url);
    if (next.origin !== url.origin && !request.followToOtherHosts) return response;
    await response.body.dump();
    url = next;
  }
  throw new DataError('too many redirects', { where: request.url, expected: `at most ${mostRedirects}` });
}

async function attempt(url: URL, request: HubRequest, headers: Record<string, string>, options: HubOptions): Promise<Response> {
  try {
    return await send(url, {
      method: request.method,
      headers: { 'accept-encoding': 'identity', 'user-agent': 'ssr', ...headers },
      headersTimeout: options.stallMs,
      bodyTimeout: options.stallMs,
      ...(options.signal && { signal: options.signal }),
    });
  } catch (error) {
    options.signal?.throwIfAborted();
    throw new ConnectionFault(faultMessage(error), null, error);
  }
}

export function faultMessage(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === 'UND_ERR_HEADERS_TIMEOUT' || code === 'UND_ERR_BODY_TIMEOUT') return 'the connection stalled';
  return message || code || String(error);
}

/** Null for "no such file"; throws with an explanation for every other status that is not a success. */
export async function explained(
  response: Response,
  where: string,
  repository: Repository,
  options: HubOptions,
): Promise<Response | null> {
  const { statusCode } = response;
  if (statusCode < 400) return response;
  await response.body.dump();
  const code = headerOf(response, 'x-error-code');
  const said = headerOf(response, 'x-error-message');
  const found = `status ${statusCode}${code ? ` ${code}` : ''}${said ? ` (${said})` : ''}`;
  const page = pageUrl(repository, options);
  if (statusCode === 401 || statusCode === 403) {
    const remedy = options.token
      ? `Accept the terms at ${page} with the account that the token belongs to, and see that the token may read gated repositories.`
      : `Accept the terms at ${page} and set HF_TOKEN to a token of that account.`;
    throw new DataError('access is refused', { where, found, remedy });
  }
  if (statusCode === 404 && (code === null || code === 'EntryNotFound')) return null;
  if (statusCode === 404) throw new DataError('no such repository or revision', { where, found, remedy: `See ${page}.` });
  if (statusCode === 429 || statusCode >= 500) throw new ConnectionFault(found, retryAfterMs(response));
  throw new DataError('the server refused the request', { where, found });
}

export function headerOf(response: Response, name: string): string | null {
  const value = response.headers[name];
  return (Array.isArray(value) ? value[0] : value) ?? null;
}

/** Retry-After in seconds or as a date. */
export function retryAfterMs(response: Response, nowMs: number = Date.now()): number | null {
  const value = headerOf(response, 'retry-after');
  if (value === null) return null;
  const seconds = Number(value);
  const wait = Number.isFinite(seconds) ? seconds * 1000 : Date.parse(value) - nowMs;
  return Number.isFinite(wait) ? Math.max(0, wait) : null;
}

/** Runs a short request again after connection faults; long transfers have their own loop, which keeps what has arrived. */
export async function persistently<T>(where: string, options: HubOptions, run: () => Promise<T>): Promise<T> {
  for (let failures = 1; ; failures++) {
    try {
      return await run();
    } catch (error) {
      if (!(error instanceof ConnectionFault)) throw error;
      if (failures >= options.attempts) throw unreachable(where, failures, error);
      await pause(failures, error, options);
    }
  }
}

function unreachable(where: string, failures: number, fault: ConnectionFault): DataError {
  return new DataError('no answer from the server', {
    where,
    found: `${fault.message} (${failures} tries)`,
    remedy: 'Check the network, or set HF_ENDPOINT to a mirror; files that you already have can be given with --from.',
    cause: fault,
  });
}

/** Waits as the server asks, else twice as long after every failure, with jitter, within the limit. */
export async function pause(failures: number, fault: ConnectionFault, options: HubOptions): Promise<void> {
  const backoff = options.retryDelayMs * 2 ** (failures - 1) * (0.5 + Math.random() / 2);
  const wait = Math.min(options.retryDelayLimitMs, fault.retryAfterMs ?? backoff);
  await sleep(wait, undefined, options.signal && { signal: options.signal });
}
