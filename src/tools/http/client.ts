// The one HTTP client of all tools: retries, redirects, budget and rate live here, once. One exchange with its limits is exchange.ts.
import type { Agent } from 'undici';
import { SsrError, ToolError } from '../../errors.js';
import type { Clock } from '../clock.js';
import { ReplyError, ToolStopError } from '../errors.js';
import type { Redactor } from '../redaction.js';
import { createAgents, type Exchanged, exchange } from './exchange.js';
import type { Guard } from './guard.js';
import type { Budget, RateLimit } from './limits.js';
import type { HttpReply, HttpRequest } from './message.js';
import { defaultRetryPolicy, isPassing, type RetryPolicy, retryDelayMs } from './retry.js';
import { parseUrl } from './url.js';

export interface HttpClient {
  /** Any status but those that passed after a retry is a reply; throws ToolError when there is none, ToolStopError beyond the budget. */
  send(request: HttpRequest, signal?: AbortSignal): Promise<HttpReply>;
  close(): Promise<void>;
}

export interface HttpClientOptions {
  readonly guard: Guard;
  readonly redactor: Redactor;
  readonly clock: Clock;
  readonly budget: Budget;
  /** By provider; without limit where absent. */
  readonly rateLimits: ReadonlyMap<string, RateLimit>;
  readonly retry?: Partial<RetryPolicy>;
}

const MOST_REDIRECTS = 5;
/** One page of several is not worth a longer wait. */
const patienceWithPagesMs = 5_000;

export function createHttpClient(options: HttpClientOptions): HttpClient {
  const agents = createAgents(options.guard);
  return {
    send: (request, signal) => sendWithRetries(request, options, agents, signal),
    async close() {
      await Promise.all([agents.guarded.destroy(), agents.open.destroy()]);
    },
  };
}

type Agents = { readonly guarded: Agent; readonly open: Agent };

async function sendWithRetries(
  request: HttpRequest,
  options: HttpClientOptions,
  agents: Agents,
  signal?: AbortSignal,
): Promise<HttpReply> {
  const given = { ...defaultRetryPolicy, ...options.retry };
  const policy = request.origin === 'outside' ? { ...given, maxRetryAfterMs: patienceWithPagesMs } : given;
  const attempts = request.attempts ?? policy.attempts;
  const { clock } = options;
  for (let attempt = 0; ; attempt++) {
    const outcome = await attemptOnce(request, options, agents, signal);
    const last = attempt + 1 >= attempts;
    if (outcome.reply && (last || !isPassing(outcome.reply.status))) return outcome.reply;
    if (outcome.error && (last || !outcome.passing)) throw outcome.error;
    const delayMs = retryDelayMs(attempt, outcome.retryAfter, policy, clock.now(), clock.random);
    if (delayMs === null) {
      if (outcome.reply) return outcome.reply;
      throw outcome.error;
    }
    await clock.sleep(delayMs, signal);
  }
}

interface Attempt {
  readonly reply?: HttpReply;
  readonly error?: SsrError;
  /** Another try may do better. */
  readonly passing?: boolean;
  readonly retryAfter?: string | undefined;
}

async function attemptOnce(
  request: HttpRequest,
  options: HttpClientOptions,
  agents: Agents,
  signal?: AbortSignal,
): Promise<Attempt> {
  const { provider } = request;
  await options.rateLimits.get(provider)?.wait(signal);
  if (request.paid) options.budget.take(provider);
  try {
    const { reply, retryAfter } = await followRedirects(request, options, agents, signal);
    // Refusals are not billed.
    if (request.paid && reply.status >= 400) options.budget.giveBack(provider);
    return { reply, retryAfter };
  } catch (cause) {
    signal?.throwIfAborted();
    if (cause instanceof SsrError) return { error: cause };
    return { error: unreachable(request, cause, options.redactor), passing: true };
  }
}

async function followRedirects(
  request: HttpRequest,
  { guard, redactor }: HttpClientOptions,
  agents: Agents,
  signal?: AbortSignal,
): Promise<Exchanged> {
  const limit = AbortSignal.timeout(request.timeoutMs);
  const bounded = signal ? AbortSignal.any([signal, limit]) : limit;
  let url = request.url;
  for (let hop = 0; hop <= MOST_REDIRECTS; hop++) {
    const open = request.origin === 'configured' || guard.check(url).allowed;
    const exchanged = await exchange({ ...request, url }, open ? agents.open : agents.guarded, redactor, bounded);
    if (exchanged.location === undefined) return exchanged;
    if (request.origin === 'configured') {
      throw new ToolError('a configured address redirects', {
        where: redactor.all(url.href),
        found: redactor.all(exchanged.location),
        remedy: 'Give the final address.',
      });
    }
    url = redirectTarget(exchanged.location, url, redactor);
  }
  throw new ToolError('too many redirects', {
    where: redactor.all(request.url.href),
    expected: `at most ${MOST_REDIRECTS}`,
  });
}

function redirectTarget(location: string, from: URL, redactor: Redactor): URL {
  const target = parseUrl(location, from.href);
  if (target) return target;
  throw new ToolError('a redirect leads nowhere', { where: redactor.all(from.href), found: redactor.all(location) });
}

function unreachable({ url, provider, timeoutMs }: HttpRequest, cause: unknown, redactor: Redactor): ToolError {
  const timedOut = cause instanceof DOMException && cause.name === 'TimeoutError';
  const { code, message } = cause as NodeJS.ErrnoException;
  return new ToolError(`${provider} did not answer`, {
    where: redactor.all(`${url.origin}${url.pathname}`),
    expected: `a reply within ${timeoutMs} ms`,
    found: timedOut ? 'no end of it in time' : redactor.all(code ?? message ?? String(cause)),
  });
}

/** Throws for a status other than 2xx: ToolStopError where the key is refused, else ReplyError. `explain` reads the back end's own words. */
export function requireSuccess(reply: HttpReply, provider: string, redactor: Redactor, explain?: (text: string) => string): void {
  if (reply.status >= 200 && reply.status < 300) return;
  const text = Buffer.from(reply.bytes).toString('utf8');
  const words = redactor.all((explain?.(text) ?? text).slice(0, 300)).trim();
  const found = words === '' ? `status ${reply.status}` : `status ${reply.status}: ${words}`;
  if (reply.status === 401 || reply.status === 402 || reply.status === 403) {
    throw new ToolStopError(`${provider} refuses the key`, {
      where: reply.url,
      found,
      remedy: 'Check the key; resume the run afterwards.',
    });
  }
  throw new ReplyError(`${provider} failed`, { where: reply.url, expected: 'status 200', found }, [reply]);
}
