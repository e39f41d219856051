// From options to a run's toolbox: providers, recording and reading of pages, put together once. What is missing is said before the run.
import { ToolInputError, UsageError } from '../errors.js';
import type { ImageSearch, TextSearch, Toolbox } from '../types.js';
import { systemClock } from './clock.js';
import { createCrop } from './crop.js';
import { createAllowList } from './http/addresses.js';
import { createHttpClient } from './http/client.js';
import { createGuard } from './http/guard.js';
import { createBudget, createRateLimit } from './http/limits.js';
import { secretsOf } from './image-search/image-host.js';
import { imageProvider } from './image-search/provider.js';
import { createThumbnailProvider, withThumbnails } from './image-search/thumbnails.js';
import type { ImageSearchOptions, NetworkOptions, RecordingOptions, TextSearchOptions, ToolOptions } from './options.js';
import { createPageParser } from './pages/page-parser.js';
import { pageReaders } from './pages/readers.js';
import { withPages } from './pages/with-pages.js';
import { normaliseQuery } from './provider.js';
import { type Operated, operate, type Recording } from './recording/recorded.js';
import { openStore } from './recording/store.js';
import { createRedactor } from './redaction.js';
import { createCounter, type ToolStatistics } from './statistics.js';
import { textProvider } from './text-search/provider.js';
import type { Workshop } from './workshop.js';

export interface Tools {
  readonly toolbox: Toolbox;
  /** So far; may be asked at any time. */
  statistics(): ToolStatistics;
  close(): Promise<void>;
}

/**
 * Throws UsageError for a tool that cannot work (a missing key, host, corpus or store), DataError for damaged files. While it runs, a
 * search throws ToolError where it fails and ToolStopError where the run should end.
 */
export async function createTools(options: ToolOptions): Promise<Tools> {
  const workshop = await openWorkshop(options);
  const { textSearch, imageSearch, crop } = options;
  try {
    const toolbox: Toolbox = {
      ...(textSearch && { textSearch: await buildTextSearch(textSearch, options, workshop) }),
      ...(imageSearch && { imageSearch: await buildImageSearch(imageSearch, workshop) }),
      ...(crop && { crop: createCrop(crop) }),
    };
    return {
      toolbox,
      statistics: () => workshop.counter.result(workshop.budget.spent(), options.network?.prices ?? {}),
      close: () => closeWorkshop(workshop),
    };
  } catch (error) {
    await closeWorkshop(workshop);
    throw error;
  }
}

async function openWorkshop({ clock = systemClock, network = {}, recording, ...options }: ToolOptions): Promise<Workshop> {
  const redactor = createRedactor(secretsIn(options));
  const guard = createGuard(allowList(network), network.resolve);
  const budget = createBudget(network.maxPaidCalls ?? null);
  const rates = Object.entries(network.requestsPerSecond ?? {});
  const rateLimits = new Map(rates.map(([provider, rate]) => [provider, createRateLimit(rate, clock)]));
  const store = await openRecording(recording);
  const http = createHttpClient({
    guard,
    redactor,
    clock,
    budget,
    rateLimits,
    ...(network.retry && { retry: network.retry }),
  });
  return { clock, redactor, guard, budget, http, parser: createPageParser(), counter: createCounter(), recording: store };
}

async function closeWorkshop({ http, parser }: Workshop): Promise<void> {
  await Promise.all([http.close(), parser.close()]);
}

async function openRecording(recording: RecordingOptions): Promise<Recording> {
  switch (recording.mode) {
    case 'live':
      return recording;
    case 'record':
      return { mode: 'record', store: await openStore(recording.store, { create: true }) };
    default: {
      const { mode, replayLatency = false } = recording;
      return { mode, replayLatency, store: await openStore(recording.store, { create: false }) };
    }
  }
}

async function buildTextSearch(options: TextSearchOptions, { pages }: ToolOptions, workshop: Workshop): Promise<TextSearch> {
  const provider = await textProvider(options, workshop);
  const search = operate(provider, workshop);
  const readers = pages && (await pageReaders(pages, workshop));
  return toTextSearch(provider.name, readers ? withPages(search, readers) : search);
}

async function buildImageSearch(options: ImageSearchOptions, workshop: Workshop): Promise<ImageSearch> {
  const provider = await imageProvider(options, workshop);
  const thumbnail = operate(createThumbnailProvider(workshop.http), workshop);
  return { name: provider.name, search: withThumbnails(operate(provider, workshop), thumbnail) };
}

function toTextSearch(name: string, search: Operated<string>): TextSearch {
  return {
    name,
    async search(query, signal) {
      const normal = normaliseQuery(query);
      if (normal === '') throw new ToolInputError('The query is blank', { expected: 'words to search for' });
      return search(normal, signal);
    },
  };
}

function allowList({ allow = [] }: NetworkOptions) {
  try {
    return createAllowList(allow);
  } catch (cause) {
    throw new UsageError('not an address, host or range', { where: 'allowed addresses', found: allow.join(', '), cause });
  }
}

function secretsIn({ textSearch, imageSearch, pages }: Pick<ToolOptions, 'textSearch' | 'imageSearch' | 'pages'>): string[] {
  const keys = [textSearch, imageSearch, pages].flatMap((part) => (part && 'key' in part && part.key ? [part.key] : []));
  const host = imageSearch?.provider === 'lens' ? imageSearch.imageHost : undefined;
  return [...keys, ...(host === undefined ? [] : secretsOf(host))];
}
