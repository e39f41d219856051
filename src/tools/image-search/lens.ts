// Reverse image search through SerpApi's Google Lens engine: the picture is uploaded to the user's image host, Lens looks at its address,
// and `visual_matches` come back as titles, addresses, sites and thumbnails.
import { z } from 'zod';
import { ToolError } from '../../errors.js';
import type { Image } from '../../types.js';
import type { Clock } from '../clock.js';
import { optionalText, parseReply } from '../json.js';
import { oneLine, type Parameters, type Provider, type ToolSearchResult } from '../provider.js';
import { askSerpApi, endpointOf, requireNoError, type SerpApiOptions } from '../serpapi.js';
import type { Counter } from '../statistics.js';
import type { ImageHost } from './image-host.js';

export interface LensOptions extends SerpApiOptions {
  /** Null in a replay, where nothing is asked for. */
  readonly host: ImageHost | null;
  readonly counter: Counter;
  readonly clock: Clock;
}

const matchSchema = z.object({
  title: optionalText,
  link: optionalText,
  source: optionalText,
  thumbnail: optionalText,
});
const replySchema = z.object({ error: z.string().optional(), visual_matches: z.array(matchSchema).optional() });

export function createLens(options: LensOptions): Provider<Image> {
  const { baseUrl, results, language, country, redactor } = options;
  const parameters: Parameters = { type: 'visual_matches', results, language, country, ...endpointOf(baseUrl) };
  return {
    kind: 'image-search',
    name: 'lens',
    version: '1',
    parameters,
    subjectOf: ({ sha256 }) => sha256,
    async ask(image, signal) {
      const url = await upload(image, options, signal);
      const asked = { engine: 'google_lens', type: 'visual_matches', url: url.href, hl: language, country };
      const reply = await askSerpApi('lens', asked, options, signal);
      const { error, visual_matches } = parseReply(reply, replySchema, 'lens');
      if (!visual_matches?.length) requireNoError(error, reply, 'lens', redactor);
      return { results: (visual_matches ?? []).slice(0, results).map(toResult), raw: [reply] };
    },
  };
}

async function upload(image: Image, { host, counter, clock }: LensOptions, signal?: AbortSignal): Promise<URL> {
  if (!host) throw new ToolError('there is no image host', { expected: '--image-host' });
  const started = clock.now();
  const count = (outcome: 'answered' | 'failed'): void =>
    counter.add({ provider: 'image-host', step: 'upload', outcome, hit: false, latencyMs: clock.now() - started });
  try {
    const url = await host.upload(image, signal);
    count('answered');
    return url;
  } catch (error) {
    count('failed');
    throw error;
  }
}

function toResult({ title, link, source, thumbnail }: z.infer<typeof matchSchema>): ToolSearchResult {
  return {
    ...(title && { title: oneLine(title) }),
    ...(link && { url: link }),
    ...(source && { source: oneLine(source) }),
    ...(thumbnail && { thumbnailUrl: thumbnail }),
  };
}
