// A cache of image searches made part of a prepared folder: image-search.jsonl, thumbnails among the images.
import { access, open, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { writeWhole } from '../hub/cache.js';
import { sha256OfFile } from '../hub/digest.js';
import { indexLines } from '../indexed-lines.js';
import { parseJson } from '../json.js';
import { readManifest } from '../loader.js';
import { preparePicture } from '../picture.js';
import { type ImageSearchEntry, imageSearchEntrySchema, preparedQuestionSchema } from '../prepared.js';
import type { CachedSearch, FoundPage } from './sources.js';

export interface ConvertedSearches {
  readonly questions: number;
  /** Ids of questions that the cache does not have. */
  readonly missing: readonly string[];
  readonly pages: number;
  readonly thumbnails: number;
  /** Pages whose thumbnail is an address only, or lost. */
  readonly withoutThumbnail: number;
}

/**
 * Adds the searches for questions of this folder and leaves out all others; an earlier cache is replaced, and stays as it was when
 * something fails or `signal` aborts.
 */
export async function addImageSearches(
  folder: string,
  searches: AsyncIterable<CachedSearch>,
  signal?: AbortSignal,
): Promise<ConvertedSearches> {
  const manifest = await readManifest(folder);
  const index = await readIndex(folder);
  const target = join(folder, 'image-search.jsonl');
  let counts: SearchCounts;
  try {
    counts = await writeSearches(`${target}.preparing`, folder, index.ids, searches, signal);
  } catch (error) {
    await rm(`${target}.preparing`, { force: true });
    await removeUnused(folder, index.images, target);
    throw error;
  }
  await rename(`${target}.preparing`, target);
  const sha256 = { ...manifest.sha256, 'image-search.jsonl': await sha256OfFile(target) };
  await writeWhole(join(folder, 'manifest.json'), `${JSON.stringify({ ...manifest, sha256 }, null, 2)}\n`);
  await removeUnused(folder, index.images, target);
  return { questions: index.ids.length, ...counts, withoutThumbnail: counts.pages - counts.thumbnails };
}

type SearchCounts = Pick<ConvertedSearches, 'missing' | 'pages' | 'thumbnails'>;

async function writeSearches(
  path: string,
  folder: string,
  ids: readonly string[],
  searches: AsyncIterable<CachedSearch>,
  signal?: AbortSignal,
): Promise<SearchCounts> {
  const missing = new Set(ids);
  const file = await open(path, 'w');
  let pages = 0;
  let thumbnails = 0;
  try {
    for await (const { id, pages: found } of searches) {
      signal?.throwIfAborted();
      if (!missing.delete(id)) continue;
      const results = await Promise.all(found.map((page) => toResult(page, folder)));
      const entry: ImageSearchEntry = { id, results };
      await file.write(`${JSON.stringify(entry)}\n`);
      pages += results.length;
      thumbnails += results.filter(({ thumbnail }) => thumbnail !== undefined).length;
    }
  } finally {
    await file.close();
  }
  return { missing: [...missing], pages, thumbnails };
}

interface Index {
  readonly ids: readonly string[];
  readonly images: ReadonlySet<string>;
}

async function readIndex(folder: string): Promise<Index> {
  const ids: string[] = [];
  const images = new Set<string>();
  const file = join(folder, 'index.jsonl');
  await indexLines(file, (line, lineNumber) => {
    const question = parseJson(line, preparedQuestionSchema, `${file}:${lineNumber}`);
    ids.push(question.id);
    for (const image of question.images) images.add(image);
  });
  return { ids, images };
}

/** Thumbnails that the search file does not name go. */
async function removeUnused(folder: string, ofQuestions: ReadonlySet<string>, searchFile: string): Promise<void> {
  const used = new Set(ofQuestions);
  const exists = await access(searchFile).then(
    () => true,
    () => false,
  );
  if (exists)
    await indexLines(searchFile, (line) => {
      for (const { thumbnail } of parseJson(line, imageSearchEntrySchema, searchFile).results) if (thumbnail) used.add(thumbnail);
    });
  for (const name of await readdir(join(folder, 'images'))) {
    if (!used.has(`images/${name}`)) await rm(join(folder, 'images', name));
  }
}

async function toResult(
  { title, thumbnail, thumbnailUrl }: FoundPage,
  folder: string,
): Promise<ImageSearchEntry['results'][number]> {
  const picture = thumbnail === undefined ? null : await preparePicture(thumbnail);
  if (picture?.kind !== 'picture') return { title, ...(thumbnailUrl && { thumbnailUrl }) };
  await writeFile(join(folder, picture.name), picture.bytes);
  return { title, thumbnail: picture.name };
}
