// Published caches of reverse image search, each in its own shape, as one: titles with what is left of their thumbnails.
// Titles and thumbnails stay pairs, so that a lost thumbnail never shifts the titles behind it.
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { z } from 'zod';
import { DataError } from '../../errors.js';
import { fileName } from '../cells.js';
import { refuseLfsPointer } from '../hub/lfs-pointer.js';
import { parseJson, parseJsonLines } from '../json.js';
import { findMarsSet, marsId, marsRowSchema } from '../mars.js';
import type { SourceFiles } from '../source-files.js';
import { type PickleValue, readPickle } from './pickle.js';
import { pillowClasses, pngOfPillow } from './pillow.js';

export interface FoundPage {
  readonly title: string;
  /** The thumbnail's picture, or where it used to be. */
  readonly thumbnail?: Uint8Array;
  readonly thumbnailUrl?: string;
}

export interface CachedSearch {
  /** Native id of the question whose picture was searched for. */
  readonly id: string;
  readonly pages: readonly FoundPage[];
}

/** FVQA: a pickle of {data_id: {tool_returned_web_title_list, tool_returned_images_urls}}, pictures being addresses or Pillow's. */
export async function* fvqaPickleSearches(file: string): AsyncGenerator<CachedSearch> {
  await refuseLfsPointer(file);
  const cache = readPickle(await readFile(file), pillowClasses, file);
  if (!(cache instanceof Map)) throw new DataError('not a cache of image searches', { where: file, expected: 'a dictionary' });
  for (const [id, entry] of cache) {
    const titles = entry instanceof Map ? entry.get('tool_returned_web_title_list') : undefined;
    const pictures = entry instanceof Map ? entry.get('tool_returned_images_urls') : undefined;
    if (typeof id !== 'string' || !Array.isArray(titles)) {
      throw new DataError('not a cache of image searches', {
        where: `${file}, entry ${String(id)}`,
        expected: 'tool_returned_web_title_list',
      });
    }
    const list = Array.isArray(pictures) ? pictures : [];
    yield { id, pages: await Promise.all(titles.map((title, i) => pickledPage(title, list[i] ?? null))) };
  }
}

async function pickledPage(title: PickleValue, picture: PickleValue): Promise<FoundPage> {
  const text = typeof title === 'string' ? title : '';
  if (typeof picture === 'string') return { title: text, thumbnailUrl: picture };
  const thumbnail = await pngOfPillow(picture);
  return thumbnail === null ? { title: text } : { title: text, thumbnail };
}

const deepEyesSchema = z.record(
  z.string(),
  z.object({ tool_returned_web_title: z.array(z.string().nullable()), cached_images_path: z.array(z.string().nullable()) }),
);

/** DeepEyesV2: JSON of {data_id: {tool_returned_web_title, cached_images_path}}; `files` holds the pictures, as files or in a zip. */
export async function* deepEyesSearches(file: string, files: SourceFiles): AsyncGenerator<CachedSearch> {
  await refuseLfsPointer(file);
  const cache = parseJson(await readFile(file, 'utf8'), deepEyesSchema, file);
  for (const [id, { tool_returned_web_title: titles, cached_images_path: paths }] of Object.entries(cache)) {
    const pages = titles.map(async (title, i): Promise<FoundPage> => {
      const path = paths[i] ?? null;
      // The path may be one of the authors' machine; the file's own name is unique.
      const thumbnail = path === null ? null : await files.read(fileName(path));
      return { title: title ?? '', ...(thumbnail && { thumbnail }) };
    });
    yield { id, pages: await Promise.all(pages) };
  }
}

/** SenseNova-MARS: lists beside each question of a set. */
export async function* marsSearches(manifestFile: string, name: string): AsyncGenerator<CachedSearch> {
  const set = await findMarsSet(manifestFile, name);
  const rows = parseJsonLines(await readFile(set.annotation, 'utf8'), marsRowSchema, set.annotation);
  for (const [position, row] of rows.entries()) {
    if (!row.image_search_title_list) continue;
    const pages = row.image_search_title_list.map(async (title, i): Promise<FoundPage> => {
      const path = row.image_search_thumbnail_list?.[i] ?? null;
      const thumbnail = path === null ? null : await readFile(resolve(set.root, path)).catch(() => null);
      return { title, ...(thumbnail && { thumbnail }) };
    });
    yield { id: marsId(row, name, position), pages: await Promise.all(pages) };
  }
}
