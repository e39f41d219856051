// What all engines of SerpApi share: one GET with the key in its query, and errors in words.
import { ReplyError, ToolStopError } from './errors.js';
import { type HttpClient, requireSuccess } from './http/client.js';
import type { HttpReply } from './http/message.js';
import { below } from './http/url.js';
import type { Parameters } from './provider.js';
import type { Redactor } from './redaction.js';

export interface SerpApiOptions {
  readonly http: HttpClient;
  readonly redactor: Redactor;
  readonly baseUrl: URL;
  readonly key: string;
  readonly results: number;
  /** Two-letter codes, `hl` and `gl` (`country` of Lens). */
  readonly language: string;
  readonly country: string;
}

export const serpApiBaseUrl = 'https://serpapi.com';

/** One GET of any SerpApi engine; the key travels in the query and is redacted from every reply and message. */
export async function askSerpApi(
  provider: string,
  query: Readonly<Record<string, string>>,
  { http, redactor, baseUrl, key }: SerpApiOptions,
  signal?: AbortSignal,
): Promise<HttpReply> {
  const url = below(baseUrl, 'search.json');
  for (const [name, value] of Object.entries({ ...query, api_key: key })) url.searchParams.set(name, value);
  const reply = await http.send(
    { provider, url, origin: 'configured', maxBytes: 10_000_000, timeoutMs: 60_000, paid: true },
    signal,
  );
  const explain = (text: string): string => /"error"\s*:\s*"((?:[^"\\]|\\.)*)"/.exec(text)?.[1] ?? text;
  if (reply.status === 429) stopWhenUsedUp(explain(Buffer.from(reply.bytes).toString('utf8')), reply, redactor);
  requireSuccess(reply, provider, redactor, explain);
  return reply;
}

/** SerpApi reports an empty result as an error in words; other errors are failures, and results win over an error beside them. */
export function requireNoError(error: string | undefined, reply: HttpReply, provider: string, redactor: Redactor): void {
  if (error === undefined || /hasn't returned any results/i.test(error)) return;
  stopWhenUsedUp(error, reply, redactor);
  throw new ReplyError(`${provider} failed`, { where: reply.url, found: redactor.all(error) }, [reply]);
}

/** The default endpoint goes without saying; answers of another one are not the same answers. */
export function endpointOf(baseUrl: URL): Parameters {
  return baseUrl.origin === serpApiBaseUrl ? {} : { endpoint: `${baseUrl.origin}${baseUrl.pathname}` };
}

function stopWhenUsedUp(error: string, { url }: HttpReply, redactor: Redactor): void {
  if (!/run out of searches|invalid api key/i.test(error)) return;
  throw new ToolStopError('SerpApi serves this key no more', { where: url, found: redactor.all(error) });
}
