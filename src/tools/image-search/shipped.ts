// Results that were searched before and lie in files: found by the picture's hash, thumbnails read from disk.
import { readFile } from 'node:fs/promises';
import { isAbsolute, join, relative, resolve, sep } from 'node:path';
import { DataError, ToolError } from '../../errors.js';
import { decodeRgb, loadImage } from '../../media/image.js';
import type { Image } from '../../types.js';
import { oneLine, type Parameters, type Provider, type ToolSearchResult } from '../provider.js';

export interface ShippedResult {
  readonly title?: string | undefined;
  readonly url?: string | undefined;
  readonly source?: string | undefined;
  /** Of the thumbnail's file; absent or null where it was lost. */
  readonly path?: string | null | undefined;
}

export interface Shipment {
  /** Names the files' contents. */
  readonly sha256: string;
  /** Null where nothing was searched for this picture. */
  find(image: Image): Promise<readonly ShippedResult[] | null>;
}

/** A picture without recorded results is a failing tool: an empty list would pretend that a search found nothing. */
export function createShippedSearch(name: string, shipment: Shipment, results: number, where: string): Provider<Image> {
  const parameters: Parameters = { results };
  return {
    kind: 'image-search',
    name,
    version: shipment.sha256,
    parameters,
    subjectOf: ({ sha256 }) => sha256,
    async ask(image) {
      const found = await shipment.find(image);
      if (!found) throw new ToolError('no results are recorded for this picture', { where, found: `image ${image.sha256}` });
      return { results: await Promise.all(found.slice(0, results).map(toResult)), raw: [] };
    },
  };
}

/** A file that a data set names, which must lie within the data set's folder. Throws DataError. */
export function within(folder: string, path: string): string {
  const absolute = resolve(folder, path);
  const inside = relative(folder, absolute);
  if (inside !== '' && inside !== '..' && !inside.startsWith(`..${sep}`) && !isAbsolute(inside)) return absolute;
  throw new DataError('a path leaves its folder', { where: folder, found: path });
}

export async function readData(...path: readonly string[]): Promise<Buffer> {
  const where = join(...path);
  return readFile(where).catch((cause: NodeJS.ErrnoException) => {
    throw new DataError('cannot be read', { where, found: cause.code ?? cause.message, cause });
  });
}

async function toResult({ title, url, source, path }: ShippedResult): Promise<ToolSearchResult> {
  const result = {
    ...(title && { title: oneLine(title) }),
    ...(url && { url }),
    ...(source && { source: oneLine(source) }),
  };
  if (!path) return result;
  try {
    const thumbnail = await loadImage(await readData(path), path);
    await decodeRgb(thumbnail.bytes, path);
    return { ...result, thumbnail };
  } catch (error) {
    if (!(error instanceof DataError)) throw error;
    return { ...result, fallback: error.message };
  }
}
