// Reverse-image results that a data set ships, in the prepared folder: image-search.jsonl holds {"id", "results"} per question, index.jsonl
// the question's picture, whose file name is its hash.
import { createHash } from 'node:crypto';
import { basename, extname, join } from 'node:path';
import { z } from 'zod';
import { DataError, UsageError } from '../../errors.js';
import { loadImage } from '../../media/image.js';
import type { Image } from '../../types.js';
import type { Provider } from '../provider.js';
import { createShippedSearch, readData, type ShippedResult, within } from './shipped.js';

const questionSchema = z.object({ id: z.string(), images: z.array(z.string()) });
const foundSchema = z.object({
  id: z.string(),
  results: z.array(z.object({ title: z.string().optional(), url: z.string().optional(), thumbnail: z.string().nullish() })),
});

/** Throws UsageError for a folder without shipped results, DataError for malformed ones. */
export async function createPrecomputedSearch(folder: string, results: number): Promise<Provider<Image>> {
  const source = await readData(folder, 'image-search.jsonl').catch((cause: unknown) => {
    throw new UsageError('the data set ships no image search results', {
      where: folder,
      expected: 'image-search.jsonl',
      remedy: 'Choose another --image-search.',
      cause,
    });
  });
  const questions = parseLines(await readData(folder, 'index.jsonl'), questionSchema, join(folder, 'index.jsonl'));
  const found = parseLines(source, foundSchema, join(folder, 'image-search.jsonl'));
  const pictures = new Map(questions.map(({ id, images }) => [id, images[0]]));
  const byPicture = new Map<string, readonly ShippedResult[]>();
  const paths = new Map<string, string>();
  for (const { id, results: rows } of found) {
    const picture = pictures.get(id);
    if (picture === undefined) continue;
    const sha256 = basename(picture, extname(picture));
    paths.set(sha256, within(folder, picture));
    byPicture.set(
      sha256,
      rows.map(({ thumbnail, ...row }) => ({ ...row, path: thumbnail ? within(folder, thumbnail) : null })),
    );
  }
  let turned: Promise<ReadonlyMap<string, string>> | undefined;
  const shipment = {
    sha256: createHash('sha256').update(source).digest('hex'),
    async find({ sha256 }: Image) {
      const direct = byPicture.get(sha256);
      if (direct) return direct;
      turned ??= turnedPictures(paths);
      return byPicture.get((await turned).get(sha256) ?? '') ?? null;
    },
  };
  return createShippedSearch('precomputed', shipment, results, folder);
}

/** A picture that its EXIF data turns is re-encoded when it is loaded: from that hash to the file's. */
async function turnedPictures(paths: ReadonlyMap<string, string>): Promise<ReadonlyMap<string, string>> {
  const turned = new Map<string, string>();
  for (const [fileHash, path] of paths) {
    const { sha256 } = await loadImage(await readData(path), path);
    if (sha256 !== fileHash) turned.set(sha256, fileHash);
  }
  return turned;
}

function parseLines<S extends z.ZodType>(source: Uint8Array, schema: S, where: string): z.infer<S>[] {
  return source
    .toString()
    .split('\n')
    .flatMap((line, i) => {
      if (line.trim() === '') return [];
      const parsed = schema.safeParse(parse(line, `${where}:${i + 1}`));
      if (parsed.success) return [parsed.data];
      const [issue] = parsed.error.issues;
      throw new DataError(`${issue?.path.join('.')}: ${issue?.message}`, { where: `${where}:${i + 1}` });
    });
}

function parse(line: string, where: string): unknown {
  try {
    return JSON.parse(line);
  } catch (cause) {
    throw new DataError('not JSON', { where, cause });
  }
}
