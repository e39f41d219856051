// A page in five sentences aimed at the query, written by a model behind any OpenAI-compatible endpoint.
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { ReplyError } from '../errors.js';
import { type HttpClient, requireSuccess } from '../http/client.js';
import { below } from '../http/url.js';
import { parseReply } from '../json.js';
import { normaliseQuery, oneLine, type Provider } from '../provider.js';
import type { Redactor } from '../redaction.js';

export interface SummaryOptions {
  readonly http: HttpClient;
  readonly redactor: Redactor;
  /** Up to and with /v1. */
  readonly baseUrl: URL;
  readonly model: string;
  /** Absent for servers that want none. */
  readonly key?: string;
  /** With {{query}} and {{page}}. */
  readonly prompt: string;
}

export interface PageText {
  readonly query: string;
  readonly text: string;
}

const replySchema = z.object({
  choices: z.array(z.object({ message: z.object({ content: z.string().nullish() }) })).min(1),
});

const MOST_NEW_TOKENS = 1_024;

export function createSummaryProvider(options: SummaryOptions): Provider<PageText> {
  const { http, redactor, baseUrl, model, key, prompt } = options;
  return {
    kind: 'summary',
    name: 'summary',
    version: '1',
    parameters: { model, prompt: sha256(prompt), maxTokens: MOST_NEW_TOKENS },
    subjectOf: ({ query, text }) => JSON.stringify([normaliseQuery(query), sha256(text)]),
    async ask(page, signal) {
      const reply = await http.send(
        {
          provider: 'summary',
          url: below(baseUrl, 'chat/completions'),
          method: 'POST',
          headers: { 'content-type': 'application/json', ...(key !== undefined && { authorization: `Bearer ${key}` }) },
          body: JSON.stringify({
            model,
            messages: [{ role: 'user', content: fill(prompt, page) }],
            temperature: 0,
            max_tokens: MOST_NEW_TOKENS,
          }),
          origin: 'configured',
          maxBytes: 2_000_000,
          timeoutMs: 120_000,
        },
        signal,
      );
      requireSuccess(reply, 'summary', redactor);
      const { choices } = parseReply(reply, replySchema, 'summary');
      const text = withoutThinking(choices[0]?.message.content ?? '');
      if (text === '') throw new ReplyError('the summary is empty', { where: reply.url }, [reply]);
      return { results: [{ text: oneLine(text) }], raw: [reply] };
    },
  };
}

/** Filled in one pass: a page that spells {{query}} gets nothing. */
function fill(prompt: string, { query, text }: PageText): string {
  return prompt.replace(/\{\{(query|page)\}\}/g, (_, name: string) => (name === 'query' ? query : text));
}

/** Reasoning models put their thoughts first, and some servers leave them in the content. */
function withoutThinking(content: string): string {
  return content.replace(/^[\s\S]*<\/think>/, '').trim();
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
