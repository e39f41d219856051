// A cache of image searches made part of a prepared folder: image-search.jsonl, thumbnails among the images.
import { open, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { loadImage } from '../../media/image.js';
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

/** Adds the searches for questions of this folder and leaves out all others; an earlier cache is replaced. */
export async function addImageSearches(folder: string, searches: AsyncIterable<CachedSearch>): Promise<ConvertedSearches> {
  const manifest = await readManifest(folder);
  const pictures = await questionPictures(folder);
  const missing = new Set(pictures.keys());
  const target = join(folder, 'image-search.jsonl');
  const file = await open(`${target}.preparing`, 'w');
  let pages = 0;
  let thumbnails = 0;
  try {
    for await (const { id, pages: found } of searches) {
      const picture = pictures.get(id);
      if (picture === undefined || !missing.delete(id)) continue;
      const results = await Promise.all(found.map((page) => toResult(page, folder)));
      const entry: ImageSearchEntry = { id, ...(picture && { picture: await shownSha256(folder, picture) }), results };
      await file.write(`${JSON.stringify(entry)}\n`);
      pages += results.length;
      thumbnails += results.filter(({ thumbnail }) => thumbnail !== undefined).length;
    }
  } finally {
    await file.close();
  }
  await rename(`${target}.preparing`, target);
  const sha256 = { ...manifest.sha256, 'image-search.jsonl': await sha256OfFile(target) };
  await writeWhole(join(folder, 'manifest.json'), `${JSON.stringify({ ...manifest, sha256 }, null, 2)}\n`);
  await removeUnused(folder, target);
  return { questions: pictures.size, missing: [...missing], pages, thumbnails, withoutThumbnail: pages - thumbnails };
}

/** Thumbnails of an earlier cache. */
async function removeUnused(folder: string, searchFile: string): Promise<void> {
  const used = new Set<string>();
  await indexLines(join(folder, 'index.jsonl'), (line) => {
    for (const image of parseJson(line, preparedQuestionSchema, folder).images) used.add(image);
  });
  await indexLines(searchFile, (line) => {
    for (const { thumbnail } of parseJson(line, imageSearchEntrySchema, searchFile).results) if (thumbnail) used.add(thumbnail);
  });
  for (const name of await readdir(join(folder, 'images'))) {
    if (!used.has(`images/${name}`)) await rm(join(folder, 'images', name));
  }
}

/** The first picture of each question, which is the one that is searched for; empty where the question has none. */
async function questionPictures(folder: string): Promise<Map<string, string>> {
  const pictures = new Map<string, string>();
  const file = join(folder, 'index.jsonl');
  await indexLines(file, (line, lineNumber) => {
    const { id, images } = parseJson(line, preparedQuestionSchema, `${file}:${lineNumber}`);
    pictures.set(id, images[0] ?? '');
  });
  return pictures;
}

/** The hash that the picture has once it is loaded: EXIF turns some. */
async function shownSha256(folder: string, name: string): Promise<string> {
  return (await loadImage(await readFile(join(folder, name)), name)).sha256;
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
