// Text search through SerpApi's Google engine: GET /search.json?engine=google&q=…&num=…, results in `organic_results`.
import { z } from 'zod';
import { optionalText, parseReply } from '../json.js';
import { normaliseQuery, oneLine, type Parameters, type Provider, type ToolSearchResult } from '../provider.js';
import { askSerpApi, endpointOf, requireNoError, type SerpApiOptions } from '../serpapi.js';

const replySchema = z.object({
  error: z.string().optional(),
  organic_results: z
    .array(
      z.object({
        title: optionalText,
        link: optionalText,
        snippet: optionalText,
        source: optionalText,
      }),
    )
    .optional(),
});

export function createSerpApi(options: SerpApiOptions): Provider<string> {
  const { baseUrl, results, language, country } = options;
  const parameters: Parameters = { engine: 'google', results, language, country, ...endpointOf(baseUrl) };
  return {
    kind: 'text-search',
    name: 'serpapi',
    version: '1',
    parameters,
    subjectOf: normaliseQuery,
    async ask(query, signal) {
      const asked = { engine: 'google', q: query, num: String(results), hl: language, gl: country };
      const reply = await askSerpApi('serpapi', asked, options, signal);
      const { error, organic_results } = parseReply(reply, replySchema, 'serpapi');
      if (!organic_results?.length) requireNoError(error, reply, 'serpapi', options.redactor);
      return { results: (organic_results ?? []).slice(0, results).map(toResult), raw: [reply] };
    },
  };
}

function toResult({
  title,
  link,
  snippet,
  source,
}: { [K in 'title' | 'link' | 'snippet' | 'source']?: string | undefined }): ToolSearchResult {
  return {
    ...(title && { title: oneLine(title) }),
    ...(snippet && { text: oneLine(snippet) }),
    ...(link && { url: link }),
    ...(source && { source: oneLine(source) }),
  };
}
