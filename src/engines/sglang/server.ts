// One SGLang server: /generate as batch, rows or stream, each request with a name by which it can be aborted, within a budget.
import { randomBytes } from 'node:crypto';
import pLimit, { type LimitFunction } from 'p-limit';
import { EngineError } from '../../errors.js';
import { batchBody, type IdsPieces, jsonBody, singleBody } from './body.js';
import type { Breaker } from './breaker.js';
import type { Call, CallResult } from './calls.js';
import { type HttpClient, type HttpReply, type ReadBody, readJson, readText, type Surroundings } from './http.js';
import type { ServerFacts } from './preflight.js';
import { type GenerateFields, type GenerateReply, generateReplySchema } from './protocol.js';

export interface ServerOptions {
  readonly http: HttpClient;
  readonly facts: ServerFacts;
  readonly breaker: Breaker;
  readonly surroundings: Surroundings;
  /** Requests in flight at this server, from this client. */
  readonly requestLimit: number;
  /** Namespace of the prefix cache; calls with different keys share nothing. */
  readonly isolationKey: string;
}

const ABORT_TIMEOUT_MS = 3_000;

export class SglangServer {
  readonly facts: ServerFacts;
  readonly http: HttpClient;
  readonly breaker: Breaker;
  readonly #options: ServerOptions;
  readonly #limit: LimitFunction;
  /** A name of our own, so that two clients of a server never abort each other's requests. */
  readonly #client = `ssr-${randomBytes(6).toString('hex')}`;
  #calls = 0;
  #batches: { text: boolean; images: boolean };

  constructor(options: ServerOptions) {
    this.facts = options.facts;
    this.http = options.http;
    this.breaker = options.breaker;
    this.#options = options;
    this.#limit = pLimit(options.requestLimit);
    this.#batches = { text: true, images: options.facts.imageBatches };
  }

  /** Whether rows with these pictures go as one request; false for good after a batch has failed once with 500. */
  batches(images: number): boolean {
    return images === 0 ? this.#batches.text : this.#batches.images;
  }

  /** Sends all rows and returns their replies in row order. */
  async call(call: Call): Promise<CallResult> {
    const started = this.#options.surroundings.clock();
    const kind = call.images.length === 0 ? 'text' : 'images';
    let wasted: Sent | null = null;
    if (call.rows.length > 1 && this.#batches[kind]) {
      const batch = await this.#batch(call);
      if (batch.replies) return this.#result(call, started, [batch]);
      this.#batches[kind] = false;
      wasted = batch;
    }
    return this.#result(call, started, await this.#rows(call), wasted);
  }

  /** One prompt whose reply arrives in parts: `read` sees them and returns the last. */
  async stream(call: Call, read: ReadBody<GenerateReply>): Promise<CallResult> {
    const started = this.#options.surroundings.clock();
    return this.#result(call, started, [await this.#single(call, call.rows[0] as IdsPieces, call.echo, call.signal, read)]);
  }

  /** Throws unless the server is there and tells who it is. */
  async probe(): Promise<void> {
    await this.http.fetch({ method: 'GET', path: '/model_info', timeoutMs: 5_000, idempotent: true }, readText);
  }

  async #batch(call: Call): Promise<Sent> {
    const rid = this.#rid();
    const body = (attempt: number) => batchBody(call.rows, call.images, this.#fields(call, rid(attempt), call.echo));
    const names = (attempt: number) => call.rows.map((_, i) => `${rid(attempt)}_${i}`); // as the server calls the rows
    const { reply, queueMs } = await this.#post(call, body, names, call.signal, false, readJson);
    if (reply.status === 500) return { reply, queueMs, replies: null };
    const rows = this.#accepted(reply);
    if (Array.isArray(rows) && rows.length === call.rows.length)
      return { reply, queueMs, replies: rows.map((row) => this.#parsed(row)) };
    throw new EngineError('wrong number of rows in the answer', {
      where: `${this.http.url}/generate`,
      expected: String(call.rows.length),
      found: Array.isArray(rows) ? String(rows.length) : 'no list',
    });
  }

  /** One request per row, all at once; the first failure aborts the others. */
  async #rows(call: Call): Promise<Sent[]> {
    const all = new AbortController();
    const cancel = (): void => all.abort(call.signal?.reason);
    if (call.signal?.aborted) cancel();
    call.signal?.addEventListener('abort', cancel, { once: true });
    const rows = call.rows.map((ids, i) =>
      this.#single(call, ids, call.echo && i === 0, all.signal, readJson).catch((error: unknown) => {
        all.abort(error);
        throw error;
      }),
    );
    try {
      await Promise.allSettled(rows);
      return await Promise.all(rows);
    } finally {
      call.signal?.removeEventListener('abort', cancel);
    }
  }

  async #single(
    call: Call,
    ids: IdsPieces,
    echo: boolean,
    signal: AbortSignal | undefined,
    read: ReadBody<unknown>,
  ): Promise<Sent> {
    const rid = this.#rid();
    const stream = read !== readJson;
    const body = (attempt: number) => {
      const fields = this.#fields(call, rid(attempt), echo);
      return singleBody({ ids, images: call.images }, stream ? { ...fields, stream: true } : fields);
    };
    const { reply, queueMs } = await this.#post(call, body, (attempt) => [rid(attempt)], signal, true, read);
    return { reply, queueMs, replies: [this.#parsed(this.#accepted(reply))] };
  }

  async #post(
    call: Call,
    body: (attempt: number) => ReturnType<typeof jsonBody>,
    names: (attempt: number) => readonly string[],
    signal: AbortSignal | undefined,
    retryServerErrors: boolean,
    read: ReadBody<unknown>,
  ): Promise<{ reply: HttpReply<unknown>; queueMs: number }> {
    const { clock } = this.#options.surroundings;
    const asked = clock();
    return this.#limit(async () => {
      const queueMs = clock() - asked;
      const reply = await this.http.exchange(
        {
          method: 'POST',
          path: '/generate',
          body,
          headers: { 'x-smg-routing-key': encodeURIComponent(call.trajectory) }, // read by SGLang's gateway
          timeoutMs: call.timeoutMs,
          idempotent: call.idempotent,
          retryServerErrors,
          abort: (attempt) => this.#abort(names(attempt)),
          ...(signal && { signal }),
        },
        read,
      );
      return { reply, queueMs };
    });
  }

  /** Asks the server to give up requests; resolves to whether it answered (a gateway's 404 is an answer). */
  async #abort(names: readonly string[]): Promise<boolean> {
    const answers = names.map((rid) =>
      this.http.exchange(
        {
          method: 'POST',
          path: '/abort_request',
          admin: true,
          body: () => jsonBody({ rid }),
          timeoutMs: ABORT_TIMEOUT_MS,
          idempotent: false,
          watched: false,
        },
        readText,
      ),
    );
    return (await Promise.allSettled(answers)).some(({ status }) => status === 'fulfilled');
  }

  #fields(call: Call, rid: string, echo: boolean): GenerateFields {
    return {
      rid,
      sampling_params: call.sampling,
      return_logprob: call.returnLogprob,
      extra_key: this.#options.isolationKey,
      ...(call.logprobStart !== undefined && { logprob_start_len: call.logprobStart }),
      ...(echo && { return_prompt_token_ids: true as const }),
      ...(call.replica !== null && { routed_dp_rank: call.replica }),
    };
  }

  /** Names of equal length, none a prefix of another: the server aborts by prefix. */
  #rid(): (attempt: number) => string {
    const name = `${this.#client}-${String(this.#calls++).padStart(9, '0')}`;
    return (attempt) => `${name}-${attempt}`;
  }

  #accepted(reply: HttpReply<unknown>): unknown {
    if (reply.status < 200 || reply.status >= 300) throw this.http.refusal('/generate', reply);
    return reply.value;
  }

  #parsed(value: unknown): GenerateReply {
    const parsed = generateReplySchema.safeParse(value);
    if (parsed.success) return parsed.data;
    const [issue] = parsed.error.issues;
    throw new EngineError('unreadable answer', {
      where: `${this.http.url}/generate`,
      found: `${issue?.path.join('.')}: ${issue?.message}`,
    });
  }

  #result(call: Call, started: number, sent: readonly Sent[], wasted: Sent | null = null): CallResult {
    const requests = sent.length;
    const all = wasted ? [...sent, wasted] : sent;
    // A batch carries the pictures once per row.
    const copies = call.images.length * call.rows.length;
    return {
      replies: sent.flatMap(({ replies }) => replies ?? []),
      cost: {
        requests,
        attempts: all.reduce((sum, { reply }) => sum + reply.attempts, 0),
        totalMs: this.#options.surroundings.clock() - started,
        queueMs: Math.max(...all.map(({ queueMs }) => queueMs)),
        retryMs: Math.max(...sent.map(({ reply }) => reply.retryMs)) + (wasted ? wasted.reply.retryMs + wasted.reply.wallMs : 0),
        imagesSent: copies,
        imageBytes: call.images.reduce((sum, image) => sum + image.byteLength, 0) * call.rows.length,
        bytesUploaded: all.reduce((sum, { reply }) => sum + reply.bytesSent, 0),
      },
    };
  }
}

interface Sent {
  readonly reply: HttpReply<unknown>;
  readonly queueMs: number;
  /** Null for a batch that the server failed with 500. */
  readonly replies: readonly GenerateReply[] | null;
}
