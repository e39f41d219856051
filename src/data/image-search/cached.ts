// Reverse image search out of a prepared folder: the pages that were found once for the pictures of its questions.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DataError, ToolError } from '../../errors.js';
import { loadImage } from '../../media/image.js';
import type { ImageSearch, SearchResult } from '../../types.js';
import { indexLines } from '../indexed-lines.js';
import { parseJson } from '../json.js';
import { readManifest } from '../loader.js';
import { type ImageSearchEntry, imageSearchEntrySchema } from '../prepared.js';

export interface CachedImageSearchOptions {
  /** Most results per picture. */
  readonly results: number;
  readonly thumbnails: boolean;
}

/**
 * Throws DataError when the folder has no cache. A search throws ToolError for a picture that the cache does not have: an empty
 * result would tell the model that nothing shows it.
 */
export async function openCachedImageSearch(folder: string, options: CachedImageSearchOptions): Promise<ImageSearch> {
  const { sha256 } = await readManifest(folder);
  const file = join(folder, 'image-search.jsonl');
  if (sha256['image-search.jsonl'] === undefined) {
    throw new DataError('the data set has no cache of image searches', {
      where: folder,
      remedy: 'Add one with: ssr data image-search',
    });
  }
  const positions = new Map<string, number>();
  let position = 0;
  const lines = await indexLines(file, (line, lineNumber) => {
    const { picture } = parseJson(line, imageSearchEntrySchema, `${file}:${lineNumber}`);
    if (picture !== undefined) positions.set(picture, position);
    position += 1;
  });
  return {
    name: 'cached',
    async search(image, signal) {
      signal?.throwIfAborted();
      const at = positions.get(image.sha256);
      if (at === undefined)
        throw new ToolError('the picture is not in the cache of image searches', { where: file, found: image.sha256 });
      const { results } = parseJson(await lines.read(at), imageSearchEntrySchema, file);
      return Promise.all(results.slice(0, options.results).map((result) => toSearchResult(result, folder, options.thumbnails)));
    },
  };
}

async function toSearchResult(
  { title, thumbnail }: ImageSearchEntry['results'][number],
  folder: string,
  thumbnails: boolean,
): Promise<SearchResult> {
  if (!thumbnails || thumbnail === undefined) return { title };
  const path = join(folder, thumbnail);
  return { title, thumbnail: await loadImage(await readFile(path), path) };
}
