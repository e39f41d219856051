// Searches on this machine as providers, so that they are recorded, replayed and counted like the others.
import type { Image, ImageSearch, TextSearch } from '../types.js';
import { normaliseQuery, type Parameters, type Provider } from './provider.js';

/** `version` names the corpus: a hash of it. */
export function fromTextSearch(search: TextSearch, version: string, parameters: Parameters): Provider<string> {
  return {
    kind: 'text-search',
    name: search.name,
    version,
    parameters,
    subjectOf: normaliseQuery,
    ask: async (query, signal) => ({ results: await search.search(query, signal), raw: [] }),
  };
}

export function fromImageSearch(search: ImageSearch, version: string, parameters: Parameters): Provider<Image> {
  return {
    kind: 'image-search',
    name: search.name,
    version,
    parameters,
    subjectOf: ({ sha256 }) => sha256,
    ask: async (image, signal) => ({ results: await search.search(image, signal), raw: [] }),
  };
}
