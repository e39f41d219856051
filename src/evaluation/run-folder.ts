// results/<run>/: manifest.json, episodes.jsonl, images/<sha256>.<ext>, summary.json and tables; every question is on disk as it ends.
import { constants } from 'node:fs';
import { access, type FileHandle, mkdir, open, readdir, rename, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { DataError, UsageError } from '../errors.js';
import type { Image } from '../types.js';
import type { Episode } from './records.js';

const EXTENSIONS: Readonly<Record<string, string>> = {
  'image/png': 'png',
  'image/jpeg': 'jpg',
  'image/webp': 'webp',
  'image/gif': 'gif',
  'image/avif': 'avif',
  'image/tiff': 'tiff',
};

/** Throws before any work when a run cannot be written there: occupied or unwritable. Creates nothing. */
export async function checkOutput(folder: string): Promise<void> {
  const inside = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw new DataError('cannot use the output folder', { where: folder, found: error.code ?? error.message, cause: error });
  });
  if (inside !== null && inside.length > 0) {
    throw new UsageError('the output folder is not empty', { where: folder, remedy: 'Name another with --output.' });
  }
  await checkWritable(inside === null ? dirname(folder) : folder, folder);
}

async function checkWritable(existing: string, folder: string): Promise<void> {
  try {
    await access(existing, constants.W_OK);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT' && dirname(existing) !== existing) {
      return checkWritable(dirname(existing), folder);
    }
    throw new DataError('the output folder cannot be written', {
      where: folder,
      found: (error as NodeJS.ErrnoException).code ?? String(error),
      remedy: 'Name another with --output.',
      cause: error,
    });
  }
}

export class RunFolder {
  readonly path: string;
  readonly #episodes: FileHandle;
  readonly #savedImages = new Set<string>();
  /** Where each question's line stands in episodes.jsonl, in bytes. */
  readonly #lines = new Map<string, { readonly offset: number; readonly length: number }>();
  #end = 0;

  private constructor(path: string, episodes: FileHandle) {
    this.path = path;
    this.#episodes = episodes;
  }

  /** Creates the folder with its manifest; throws DataError when it cannot be written. */
  static async create(path: string, manifest: unknown): Promise<RunFolder> {
    try {
      await mkdir(join(path, 'images'), { recursive: true });
      await writeFile(join(path, 'manifest.json'), `${JSON.stringify(manifest, null, 2)}\n`);
      return new RunFolder(path, await open(join(path, 'episodes.jsonl'), 'ax+'));
    } catch (cause) {
      throw new DataError('the output folder cannot be written', {
        where: path,
        found: cause instanceof Error ? cause.message : String(cause),
        remedy: 'Name another with --output.',
        cause,
      });
    }
  }

  /** Pictures first, then the line that refers to them. One call at a time. */
  async append(episode: Episode, images: readonly Image[]): Promise<void> {
    for (const image of images) await this.#saveImage(image);
    const line = Buffer.from(`${JSON.stringify(episode)}\n`);
    await this.#episodes.appendFile(line);
    this.#lines.set(episode.id, { offset: this.#end, length: line.length });
    this.#end += line.length;
  }

  /** Puts the lines, written as questions ended, into the order of `ids`, one line in memory at a time, atomically. */
  async finish(ids: readonly string[]): Promise<void> {
    const path = join(this.path, 'episodes.jsonl');
    const ordered = await open(`${path}.part`, 'w');
    for (const id of ids) {
      const line = this.#lines.get(id);
      if (line === undefined) continue;
      const { buffer } = await this.#episodes.read(Buffer.alloc(line.length), 0, line.length, line.offset);
      await ordered.appendFile(buffer);
    }
    await Promise.all([ordered.close(), this.#episodes.close()]);
    await rename(`${path}.part`, path);
  }

  /** Writes a file of the folder in one step: a reader sees the old one or the new one. */
  async write(name: string, text: string): Promise<void> {
    const path = join(this.path, name);
    await writeFile(`${path}.part`, text);
    await rename(`${path}.part`, path);
  }

  async #saveImage({ sha256, mediaType, bytes }: Image): Promise<void> {
    if (this.#savedImages.has(sha256)) return;
    this.#savedImages.add(sha256);
    const path = join(this.path, 'images', `${sha256}.${EXTENSIONS[mediaType] ?? 'bin'}`);
    await writeFile(`${path}.part`, bytes);
    await rename(`${path}.part`, path);
  }
}
