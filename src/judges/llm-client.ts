// One chat completion from any server with OpenAI's interface, tried again while the trouble is likely to pass.
import { setTimeout as sleep } from 'node:timers/promises';
import { request } from 'undici';
import { z } from 'zod';
import { JudgeError } from '../errors.js';

export interface ChatClientOptions {
  /** Up to and including the version, as in https://host/v1. */
  readonly url: string;
  readonly model: string;
  readonly apiKey?: string;
  /** Sent with every request, beside model and messages. */
  readonly parameters: Readonly<Record<string, unknown>>;
  /** Limit of one try. */
  readonly timeoutMs: number;
  readonly attempts: number;
  readonly retryDelayMs: number;
  readonly retryDelayLimitMs: number;
}

export interface ChatMessage {
  readonly role: 'user' | 'assistant';
  readonly content: string | readonly ChatPart[];
}

export type ChatPart =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image_url'; readonly image_url: { readonly url: string } };

const replySchema = z.object({
  choices: z
    .array(z.object({ message: z.object({ content: z.string().nullish() }), finish_reason: z.string().nullish() }))
    .min(1),
});

/** Text of the reply, empty when the model said nothing. Throws JudgeError that says how often was tried and why it failed. */
export async function chat(messages: readonly ChatMessage[], options: ChatClientOptions, signal?: AbortSignal): Promise<string> {
  for (let attempt = 1; ; attempt++) {
    const outcome = await tryOnce(messages, options, signal);
    if (outcome.kind === 'reply') return outcome.text;
    if (!outcome.passing || attempt >= options.attempts) {
      throw new JudgeError('the judge gave no reply', {
        where: completionsUrl(options.url),
        found: `${outcome.reason} (${attempt} of ${options.attempts} tries)`,
      });
    }
    await sleep(waitMs(attempt, outcome.retryAfterMs, options), undefined, signal && { signal });
  }
}

type Outcome =
  | { readonly kind: 'reply'; readonly text: string }
  | { readonly kind: 'failure'; readonly reason: string; readonly passing: boolean; readonly retryAfterMs: number | null };

async function tryOnce(messages: readonly ChatMessage[], options: ChatClientOptions, signal?: AbortSignal): Promise<Outcome> {
  const limit = AbortSignal.timeout(options.timeoutMs);
  try {
    const response = await request(completionsUrl(options.url), {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...(options.apiKey && { authorization: `Bearer ${options.apiKey}` }) },
      body: JSON.stringify({ model: options.model, messages, ...options.parameters }),
      signal: signal ? AbortSignal.any([signal, limit]) : limit,
    });
    const body = await response.body.text();
    if (response.statusCode === 200) return readReply(body);
    const passing = [408, 409, 425, 429].includes(response.statusCode) || response.statusCode >= 500;
    const retryAfter = response.headers['retry-after'];
    const reason = `status ${response.statusCode}: ${body.slice(0, 300)}`;
    return {
      kind: 'failure',
      reason,
      passing,
      retryAfterMs: readRetryAfter(Array.isArray(retryAfter) ? retryAfter[0] : retryAfter),
    };
  } catch (error) {
    signal?.throwIfAborted();
    const reason = limit.aborted
      ? `no reply within ${options.timeoutMs} ms`
      : error instanceof Error
        ? error.message
        : String(error);
    return { kind: 'failure', reason, passing: true, retryAfterMs: null };
  }
}

/** A body that is no chat completion comes from a proxy or a broken server, and may be right the next time. */
function readReply(body: string): Outcome {
  try {
    const [choice] = replySchema.parse(JSON.parse(body)).choices;
    return { kind: 'reply', text: choice?.message.content ?? '' };
  } catch {
    return { kind: 'failure', reason: `not a chat completion: ${body.slice(0, 300)}`, passing: true, retryAfterMs: null };
  }
}

function completionsUrl(url: string): string {
  const base = url.replace(/\/+$/, '');
  return base.endsWith('/chat/completions') ? base : `${base}/chat/completions`;
}

/** What the server asks for, else twice as long each time with full jitter; both within the limit. */
function waitMs(attempt: number, retryAfterMs: number | null, { retryDelayMs, retryDelayLimitMs }: ChatClientOptions): number {
  const backoff = Math.random() * retryDelayMs * 2 ** (attempt - 1);
  return Math.min(retryDelayLimitMs, retryAfterMs ?? backoff);
}

/** Seconds or a date. */
function readRetryAfter(value: string | undefined): number | null {
  if (value === undefined) return null;
  const wait = value.trim() !== '' && Number.isFinite(Number(value)) ? Number(value) * 1000 : Date.parse(value) - Date.now();
  return Number.isFinite(wait) ? Math.max(0, wait) : null;
}
