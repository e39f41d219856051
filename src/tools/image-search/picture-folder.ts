// A folder of pictures with titles for the local search: titles.jsonl lines {"image", "title"}, or the file names where there is none.
import { createHash } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { basename, extname, join, relative, sep } from 'node:path';
import { z } from 'zod';
import { DataError, UsageError } from '../../errors.js';
import { loadImage } from '../../media/image.js';
import type { IndexedPicture } from './local.js';
import { readData, within } from './shipped.js';

export interface PictureFolder {
  readonly pictures: readonly IndexedPicture[];
  /** Hex SHA-256 over titles and picture files. */
  readonly sha256: string;
}

const titleSchema = z.object({ image: z.string(), title: z.string().min(1) });

/** Throws UsageError when there is nothing to search, DataError for malformed titles or missing pictures. */
export async function readPictureFolder(folder: string): Promise<PictureFolder> {
  const listed = await listPictures(folder);
  if (listed.length === 0) {
    throw new UsageError('no pictures to search', { where: folder, expected: 'titles.jsonl, or *.jpg, *.png, *.webp or *.gif' });
  }
  const hash = createHash('sha256');
  for (const { path, title } of listed) {
    const fileHash = createHash('sha256')
      .update(await readData(path))
      .digest('hex');
    hash.update(`${JSON.stringify([title, fileHash])}\n`);
  }
  return {
    pictures: listed.map(({ path, title }) => ({ title, load: async () => loadImage(await readData(path), path) })),
    sha256: hash.digest('hex'),
  };
}

async function listPictures(folder: string): Promise<{ path: string; title: string }[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch((cause: NodeJS.ErrnoException) => {
    throw new UsageError('cannot read the pictures', { where: folder, found: cause.code ?? cause.message, cause });
  });
  if (entries.some(({ name, parentPath }) => name === 'titles.jsonl' && parentPath === folder)) return readTitles(folder);
  return entries
    .filter((entry) => entry.isFile() && /\.(?:jpe?g|png|webp|gif)$/i.test(entry.name))
    .map(({ parentPath, name }) => relative(folder, join(parentPath, name)).split(sep).join('/'))
    .sort()
    .map((path) => ({ path: join(folder, path), title: basename(path, extname(path)) }));
}

async function readTitles(folder: string): Promise<{ path: string; title: string }[]> {
  const source = (await readData(folder, 'titles.jsonl')).toString();
  return source.split('\n').flatMap((line, i) => {
    if (line.trim() === '') return [];
    const parsed = titleSchema.safeParse(parse(line));
    if (parsed.success) return [{ path: within(folder, parsed.data.image), title: parsed.data.title }];
    throw new DataError('malformed', {
      where: `${join(folder, 'titles.jsonl')}:${i + 1}`,
      expected: '{"image": "…", "title": "…"}',
    });
  });
}

function parse(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
