// HTTP to one SGLang server: a keep-alive pool, a time limit per request, and the client's only retry layer.
import { setMaxListeners } from 'node:events';
import { Pool } from 'undici';
import type { EngineError } from '../../errors.js';
import type { Body } from './body.js';
import type { Breaker } from './breaker.js';
import { describe, failureError, networkOutcome, refusalError } from './http-errors.js';
import { DEFAULT_RETRY, type Outcome, parseRetryAfter, type RetryPolicy, retryDelayMs } from './retry.js';
import { SendBuffers } from './send-buffers.js';

/** Time and chance, injected so that tests own them. */
export interface Surroundings {
  /** Milliseconds that never go back. */
  readonly clock: () => number;
  /** Unix time in milliseconds. */
  readonly now: () => number;
  /** Resolves after `ms`, rejects with the signal's reason when that aborts. */
  readonly sleep: (ms: number, signal?: AbortSignal) => Promise<void>;
  /** Calls `action` after `ms`, unless the returned function is called before. */
  readonly after: (ms: number, action: () => void) => () => void;
  readonly random: () => number;
}

export interface HttpOptions {
  readonly url: string;
  readonly apiKey?: string;
  /** Taken by the management endpoints of a server started with --admin-api-key. */
  readonly adminKey?: string;
  readonly connections?: number;
  readonly connectTimeoutMs?: number;
  readonly retry?: RetryPolicy;
  /** Told how requests end, unless they say otherwise. */
  readonly breaker?: Breaker;
  readonly surroundings: Surroundings;
}

export interface HttpRequest {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  /** Made anew for each send (1, 2, …), so that a request sent again can carry another name. */
  readonly body?: (attempt: number) => Body;
  readonly headers?: Readonly<Record<string, string>>;
  readonly admin?: boolean;
  readonly timeoutMs: number;
  /** Sending it twice has the effect of sending it once. */
  readonly idempotent: boolean;
  /** False where a 500 has its own remedy (a batch that is sent as rows instead). */
  readonly retryServerErrors?: boolean;
  /** False for requests whose end says nothing about the server's health. */
  readonly watched?: boolean;
  readonly signal?: AbortSignal;
  /**
   * Called on timeout and on cancel while the connection is still open: a server forgets the request's name when the
   * connection goes, and then cannot abort it. Resolves to whether the server answered.
   */
  readonly abort?: (attempt: number) => Promise<boolean>;
}

export interface HttpReply<T> {
  readonly status: number;
  /** What `read` made of a reply with status 2xx. */
  readonly value: T | null;
  /** The body of any other reply. */
  readonly text: string;
  readonly attempts: number;
  /** Time of the send that counted. */
  readonly wallMs: number;
  /** Time in earlier sends and in waiting between them; no part of a model's latency. */
  readonly retryMs: number;
  readonly bytesSent: number;
}

/** Pieces as they arrive, or all of it. */
export interface ReplyBody extends AsyncIterable<Uint8Array> {
  text(): Promise<string>;
}

export type ReadBody<T> = (body: ReplyBody) => Promise<T>;

export class HttpClient {
  readonly url: string;
  readonly #options: HttpOptions;
  readonly #basePath: string;
  readonly #buffers = new SendBuffers();
  #pool: Pool;

  constructor(options: HttpOptions) {
    const { origin, pathname } = new URL(options.url);
    this.url = options.url;
    this.#options = options;
    this.#basePath = pathname.replace(/\/+$/, '');
    this.#pool = this.#createPool(origin);
  }

  /**
   * Sends until a reply stands, and returns it whatever its status. Throws EngineUnavailableError when no reply can be
   * had, EngineError when the server lives but this request did not end in time, and the signal's reason on cancel.
   */
  async exchange<T>(request: HttpRequest, read: ReadBody<T>): Promise<HttpReply<T>> {
    const { clock, sleep, random } = this.#options.surroundings;
    const { retryServerErrors = true, idempotent, signal } = request;
    const policy = this.#options.retry ?? DEFAULT_RETRY;
    let first: number | null = null;
    for (let attempts = 1; ; attempts++) {
      signal?.throwIfAborted();
      const started = clock();
      first ??= started;
      const body = request.body?.(attempts);
      const outcome = await this.#attempt(request, body, attempts, read);
      const delayMs = retryDelayMs(outcome, attempts, { idempotent, retryServerErrors }, policy, random);
      if (delayMs !== null) {
        if (outcome.kind === 'dropped') await request.abort?.(attempts).catch(() => false); // what may still run there
        await sleep(delayMs, signal);
        continue;
      }
      if (request.watched !== false) this.#watch(outcome);
      if (outcome.kind !== 'reply') {
        throw failureError(`${this.url}${request.path}`, outcome, request.timeoutMs, attempts);
      }
      const { status, value, text } = outcome;
      const times = { wallMs: clock() - started, retryMs: started - first };
      return { status, value, text, attempts, ...times, bytesSent: body?.byteLength ?? 0 };
    }
  }

  /** As `exchange`, for requests where only 2xx is a reply. */
  async fetch<T>(request: HttpRequest, read: ReadBody<T>): Promise<T> {
    const reply = await this.exchange(request, read);
    if (reply.value === null) throw this.refusal(request.path, reply);
    return reply.value;
  }

  /** The error for a reply with any other status. */
  refusal(path: string, reply: Pick<HttpReply<unknown>, 'status' | 'text' | 'attempts'>): EngineError {
    return refusalError(`${this.url}${path}`, reply);
  }

  async close(): Promise<void> {
    await this.#pool.destroy();
  }

  async #attempt<T>(request: HttpRequest, body: Body | undefined, attempt: number, read: ReadBody<T>): Promise<Outcome<T>> {
    const connection = new AbortController();
    const { signal } = request;
    // All requests of a run listen to one signal; that is many listeners and no leak.
    if (signal) setMaxListeners(0, signal);
    let cancel = (): void => undefined;
    let forgetTimer = cancel;
    const stopped = new Promise<'timeout' | 'cancelled'>((resolve) => {
      cancel = () => resolve('cancelled');
      signal?.addEventListener('abort', cancel, { once: true });
      forgetTimer = this.#options.surroundings.after(request.timeoutMs, () => resolve('timeout'));
    });
    try {
      const exchange = this.#send(request, body, read, connection.signal).catch((error: unknown) => networkOutcome(error));
      const winner = await Promise.race([exchange, stopped]);
      if (typeof winner !== 'string') return winner;
      const alive = (await request.abort?.(attempt).catch(() => false)) ?? true;
      connection.abort();
      await exchange;
      if (winner === 'cancelled') signal?.throwIfAborted();
      return { kind: 'timeout', alive };
    } finally {
      signal?.removeEventListener('abort', cancel);
      forgetTimer();
    }
  }

  async #send<T>(request: HttpRequest, sent: Body | undefined, read: ReadBody<T>, signal: AbortSignal): Promise<Outcome<T>> {
    const { apiKey, adminKey, surroundings } = this.#options;
    const key = request.admin ? (adminKey ?? apiKey) : apiKey;
    const joined = sent ? this.#buffers.join(sent) : null;
    const { statusCode, headers, body } = await this.#pool.request({
      method: request.method,
      path: this.#basePath + request.path,
      signal,
      headers: {
        ...(sent && { 'content-type': 'application/json', 'content-length': String(sent.byteLength) }),
        ...(key !== undefined && { authorization: `Bearer ${key}` }),
        ...request.headers,
      },
      // Any iterable of bytes is a body to undici, though its types name only the common kinds.
      ...(sent && { body: joined ?? (sent.pieces as unknown as Uint8Array) }),
    });
    if (statusCode >= 200 && statusCode < 300) {
      const value = await read(body);
      if (joined) this.#buffers.giveBack(joined);
      return { kind: 'reply', status: statusCode, retryAfterMs: null, value, text: '' };
    }
    const text = await body.text().catch(() => '');
    if (statusCode === 500) this.#renew(); // the server closes the connection after a 500 without saying so
    const retryAfter = headers['retry-after'];
    const retryAfterMs = parseRetryAfter(Array.isArray(retryAfter) ? retryAfter[0] : retryAfter, surroundings.now());
    return { kind: 'reply', status: statusCode, retryAfterMs, value: null, text };
  }

  /** A refused or unanswered request counts against the server, a 4xx or 500 against the request. */
  #watch(outcome: Outcome<unknown>): void {
    const { breaker } = this.#options;
    if (outcome.kind === 'unreached') breaker?.failed(describe(outcome.error), true);
    else if (outcome.kind === 'dropped') breaker?.failed(describe(outcome.error), false);
    else if (outcome.kind === 'timeout') breaker?.failed('no answer in time', false);
    else if (outcome.status === 429 || outcome.status === 503) breaker?.failed(`answered ${outcome.status}`, false);
    else if (outcome.status < 500) breaker?.succeeded();
  }

  /** Later requests open fresh connections; those in flight finish on the old ones. */
  #renew(): void {
    const old = this.#pool;
    this.#pool = this.#createPool(new URL(this.url).origin);
    old.close().catch(() => undefined);
  }

  #createPool(origin: string): Pool {
    return new Pool(origin, {
      connections: this.#options.connections ?? 128,
      pipelining: 1,
      allowH2: false,
      // Below uvicorn's five seconds, so that no request is written to a connection the server is closing.
      keepAliveTimeout: 2_000,
      keepAliveMaxTimeout: 2_000,
      headersTimeout: 0, // the limit per request above is the only one
      bodyTimeout: 0,
      connect: { timeout: this.#options.connectTimeoutMs ?? 5_000 },
    });
  }
}

/** Reads a JSON reply; a body that is no JSON counts as a broken connection, since a cut body is one. */
export async function readJson(body: ReplyBody): Promise<unknown> {
  return JSON.parse(await body.text());
}

export function readText(body: ReplyBody): Promise<string> {
  return body.text();
}
