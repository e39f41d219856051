// Text search through Serper: POST /search {q, num, hl, gl} with the key in X-API-KEY, results in `organic`.
import { z } from 'zod';
import { ToolStopError } from '../errors.js';
import { type HttpClient, requireSuccess } from '../http/client.js';
import { below } from '../http/url.js';
import { optionalText, parseReply } from '../json.js';
import { normaliseQuery, oneLine, type Parameters, type Provider } from '../provider.js';
import type { Redactor } from '../redaction.js';

export interface SerperOptions {
  readonly http: HttpClient;
  readonly redactor: Redactor;
  readonly baseUrl: URL;
  readonly key: string;
  readonly results: number;
  readonly language: string;
  readonly country: string;
}

export const serperBaseUrl = 'https://google.serper.dev';

const replySchema = z.object({
  organic: z.array(z.object({ title: optionalText, link: optionalText, snippet: optionalText })),
});

export function createSerper(options: SerperOptions): Provider<string> {
  const { http, redactor, baseUrl, key, results, language, country } = options;
  const endpoint: Parameters = baseUrl.origin === serperBaseUrl ? {} : { endpoint: `${baseUrl.origin}${baseUrl.pathname}` };
  return {
    kind: 'text-search',
    name: 'serper',
    version: '1',
    parameters: { results, language, country, ...endpoint },
    subjectOf: normaliseQuery,
    async ask(query, signal) {
      const reply = await http.send(
        {
          provider: 'serper',
          url: below(baseUrl, 'search'),
          method: 'POST',
          headers: { 'content-type': 'application/json', 'x-api-key': key },
          body: JSON.stringify({ q: query, num: results, hl: language, gl: country }),
          origin: 'configured',
          maxBytes: 10_000_000,
          timeoutMs: 30_000,
          paid: true,
        },
        signal,
      );
      const text = Buffer.from(reply.bytes).toString('utf8');
      // Serper says with 400 what others say with 402.
      if (reply.status === 400 && /not enough credits/i.test(text)) {
        throw new ToolStopError('Serper has no credits left for this key', { where: reply.url });
      }
      requireSuccess(reply, 'serper', redactor, (body) => /"message"\s*:\s*"([^"]*)"/.exec(body)?.[1] ?? body);
      const { organic } = parseReply(reply, replySchema, 'serper');
      const found = organic.slice(0, results).map(({ title, link, snippet }) => ({
        ...(title && { title: oneLine(title) }),
        ...(snippet && { text: oneLine(snippet) }),
        ...(link && { url: link }),
      }));
      return { results: found, raw: [reply] };
    },
  };
}
