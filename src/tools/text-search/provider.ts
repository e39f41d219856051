// Text search by name: from its options to its provider.
import { fromTextSearch } from '../embedded.js';
import { hosted } from '../hosted.js';
import { requireEndpoint } from '../http/url.js';
import type { TextSearchOptions } from '../options.js';
import type { Provider } from '../provider.js';
import { serpApiBaseUrl } from '../serpapi.js';
import type { Workshop } from '../workshop.js';
import { readCorpus } from './corpus.js';
import { createLocalTextSearch } from './local.js';
import { createRetriever } from './retriever.js';
import { createSerpApi } from './serpapi.js';
import { createSerper, serperBaseUrl } from './serper.js';

/** Throws UsageError for a back end that cannot work. */
export async function textProvider(options: TextSearchOptions, workshop: Workshop): Promise<Provider<string>> {
  switch (options.provider) {
    case 'serpapi':
      return createSerpApi(hosted(options, serpApiBaseUrl, 'serpapi', 'SERPAPI_API_KEY', workshop));
    case 'serper':
      return createSerper(hosted(options, serperBaseUrl, 'serper', 'SERPER_API_KEY', workshop));
    case 'retriever': {
      const { http, redactor } = workshop;
      return createRetriever({ http, redactor, url: requireEndpoint(options.url, 'retriever URL'), results: options.results });
    }
    case 'local': {
      const { passages, sha256 } = await readCorpus(options.corpus);
      const { results } = options;
      return fromTextSearch(createLocalTextSearch(passages, { results }), sha256, { results });
    }
    case 'given':
      return fromTextSearch(options.search, options.version, { results: options.results });
  }
}
