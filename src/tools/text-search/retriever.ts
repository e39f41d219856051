// Text search through a Search-R1 retrieval server: POST /retrieve {queries, topk, return_scores}. Its `result` holds one list per query,
// of {document, score} with scores asked for and of bare documents without; both are read, whatever was asked for.
import { z } from 'zod';
import { ReplyError } from '../errors.js';
import { type HttpClient, requireSuccess } from '../http/client.js';
import { parseReply } from '../json.js';
import { normaliseQuery, oneLine, type Provider, type ToolSearchResult } from '../provider.js';
import type { Redactor } from '../redaction.js';

export interface RetrieverOptions {
  readonly http: HttpClient;
  readonly redactor: Redactor;
  /** The whole address, such as http://127.0.0.1:8000/retrieve. */
  readonly url: URL;
  readonly results: number;
}

const documentSchema = z.union([
  z.object({ contents: z.string() }),
  z.object({ title: z.string().optional(), text: z.string(), url: z.string().optional() }),
]);
const hitSchema = z.union([z.object({ document: documentSchema }).transform(({ document }) => document), documentSchema]);
const replySchema = z.object({ result: z.array(z.array(hitSchema)) });

export function createRetriever({ http, redactor, url, results }: RetrieverOptions): Provider<string> {
  return {
    kind: 'text-search',
    name: 'retriever',
    version: '1',
    // Another server is another corpus.
    parameters: { results, endpoint: `${url.origin}${url.pathname}` },
    subjectOf: normaliseQuery,
    async ask(query, signal) {
      const reply = await http.send(
        {
          provider: 'retriever',
          url,
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ queries: [query], topk: results, return_scores: true }),
          origin: 'configured',
          maxBytes: 10_000_000,
          timeoutMs: 30_000,
        },
        signal,
      );
      requireSuccess(reply, 'retriever', redactor);
      const { result } = parseReply(reply, replySchema, 'retriever');
      const [hits] = result;
      if (hits === undefined || result.length !== 1) {
        throw new ReplyError(
          'the retriever answered another number of queries',
          { where: reply.url, expected: '1 list of results', found: String(result.length) },
          [reply],
        );
      }
      return { results: hits.slice(0, results).map(toResult), raw: [reply] };
    },
  };
}

/** Search-R1's corpora keep `"Title"` on the first line of `contents`. */
function toResult(document: z.infer<typeof documentSchema>): ToolSearchResult {
  if (!('contents' in document)) {
    const { title, text, url } = document;
    return { ...(title && { title: oneLine(title) }), text: oneLine(text), ...(url && { url }) };
  }
  const [first = '', ...rest] = document.contents.split('\n');
  if (rest.length === 0) return { text: oneLine(first) };
  return { title: oneLine(first.replace(/^"(.*)"$/, '$1')), text: oneLine(rest.join('\n')) };
}
