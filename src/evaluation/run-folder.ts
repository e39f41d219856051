// results/<run>/: manifest.json, episodes.jsonl, images/<sha256>.<ext>, summary.json and tables; every question is on disk as it ends.
import { createWriteStream, type WriteStream } from 'node:fs';
import { access, type FileHandle, mkdir, open, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { DataError } from '../errors.js';
import type { Image } from '../types.js';
import { readEpisodeLines } from './episodes-file.js';
import { lockFolder } from './lock.js';
import { type Episode, episodeSchema } from './records.js';
import { type Identity, isSettled, requireSameRun } from './resume.js';

const EXTENSIONS: Readonly<Record<string, string>> = {
  'image/png': 'png',
  'image/jpeg': 'jpg',
  'image/webp': 'webp',
  'image/gif': 'gif',
  'image/avif': 'avif',
  'image/tiff': 'tiff',
};

/** Files a run may leave; `fresh` removes these and nothing else. */
const OWN_FILES = [
  'manifest.json',
  'episodes.jsonl',
  'images',
  'summary.json',
  'success.csv',
  'latency.csv',
  'calls.jsonl',
  'tools.json',
];

export interface OpenOptions {
  /** Starts again in a folder that holds a run. */
  readonly fresh: boolean;
  /** Owes failed tools and judges again too, not only surprises and interruptions. */
  readonly retryErrors: boolean;
  /** Sees every row that is kept. */
  readonly onKept: (episode: Episode) => void;
}

export class RunFolder {
  readonly path: string;
  readonly #episodes: FileHandle;
  readonly #unlock: () => Promise<void>;
  readonly #savedImages = new Set<string>();
  /** Where each question's line stands in episodes.jsonl, in bytes. */
  readonly #lines = new Map<string, { readonly offset: number; readonly length: number }>();
  #end = 0;
  #calls: WriteStream | null = null;

  private constructor(path: string, episodes: FileHandle, unlock: () => Promise<void>) {
    this.path = path;
    this.#episodes = episodes;
    this.#unlock = unlock;
  }

  /**
   * Creates the folder, or resumes the run in it when its manifest has the same identity. Throws UsageError for another
   * run or another process at work in the folder, DataError when it cannot be written.
   */
  static async open(path: string, manifest: { readonly identity: Identity }, options: OpenOptions): Promise<RunFolder> {
    let unlock = async (): Promise<void> => undefined;
    try {
      await makeFolder(path);
      unlock = await lockFolder(path);
      await prepareFolder(path, manifest, options.fresh);
      const episodes = join(path, 'episodes.jsonl');
      const kept = await keepSettled(episodes, options);
      const folder = new RunFolder(path, await open(episodes, 'a+'), unlock);
      for (const { id, length } of kept) folder.#noteLine(id, length);
      return folder;
    } catch (error) {
      await unlock();
      if (error instanceof Error && 'code' in error) throw unwritable(path, error);
      throw error;
    }
  }

  /** Whether the question's line is on disk. */
  has(id: string): boolean {
    return this.#lines.has(id);
  }

  /** Pictures first, then the line that refers to them. One call at a time. */
  async append(episode: Episode, images: readonly Image[]): Promise<void> {
    const line = Buffer.from(`${JSON.stringify(episodeSchema.parse(episode))}\n`);
    await this.#guarded(async () => {
      for (const image of images) await this.#saveImage(image);
      await this.#episodes.appendFile(line);
    });
    this.#noteLine(episode.id, line.length);
  }

  /** Puts the lines, written as questions ended, into the order of `ids`, one line in memory at a time, atomically. */
  async sort(ids: readonly string[]): Promise<void> {
    const path = join(this.path, 'episodes.jsonl');
    await this.#guarded(async () => {
      const ordered = await open(`${path}.part`, 'w');
      try {
        for (const id of ids) {
          const line = this.#lines.get(id);
          if (line === undefined) continue;
          const { buffer } = await this.#episodes.read(Buffer.alloc(line.length), 0, line.length, line.offset);
          await ordered.appendFile(buffer);
        }
      } finally {
        await ordered.close();
      }
      await rename(`${path}.part`, path);
    });
  }

  /** Writes a file of the folder in one step. */
  async write(name: string, text: string): Promise<void> {
    await this.#guarded(() => writeWhole(join(this.path, name), text));
  }

  /** One line of calls.jsonl: what a request to a server cost. Buffered; a crash may lose the last ones, never an episode. */
  logCall(call: unknown): void {
    this.#calls ??= createWriteStream(join(this.path, 'calls.jsonl'), { flags: 'a' });
    this.#calls.write(`${JSON.stringify(call)}\n`);
  }

  async close(): Promise<void> {
    const calls = this.#calls;
    if (calls) await new Promise((resolve) => calls.end(resolve));
    await this.#episodes.close();
    await this.#unlock();
  }

  #noteLine(id: string, length: number): void {
    this.#lines.set(id, { offset: this.#end, length });
    this.#end += length;
  }

  async #saveImage({ sha256, mediaType, bytes }: Image): Promise<void> {
    if (this.#savedImages.has(sha256)) return;
    await writeWhole(join(this.path, 'images', `${sha256}.${EXTENSIONS[mediaType] ?? 'bin'}`), bytes);
    this.#savedImages.add(sha256);
  }

  /** A full or lost disk is told in one line; what was written whole stays, and the run can be resumed. */
  async #guarded(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      throw error instanceof Error && 'code' in error ? unwritable(this.path, error) : error;
    }
  }
}

/** Makes sure that the folder holds the manifest of this run, and nothing of an older one when it starts afresh. */
async function prepareFolder(path: string, manifest: { readonly identity: Identity }, fresh: boolean): Promise<void> {
  const found = await readRunManifest(path);
  if (found !== null && !fresh) return requireSameRun(found.identity, manifest.identity, path);
  // Without a run's manifest these files are somebody else's; `checkOutput` has refused a folder that holds any.
  if (found !== null) await Promise.all(OWN_FILES.map((name) => rm(join(path, name), { recursive: true, force: true })));
  await makeFolder(join(path, 'images'));
  await writeWhole(join(path, 'manifest.json'), `${JSON.stringify(manifest, null, 2)}\n`);
}

/** The manifest of the run in a folder; null where there is none, or where the file is another thing's. */
export async function readRunManifest(path: string): Promise<{ identity: Identity } | null> {
  try {
    const manifest = JSON.parse(await readFile(join(path, 'manifest.json'), 'utf8')) as { identity?: unknown };
    return typeof manifest.identity === 'object' && manifest.identity !== null
      ? { identity: manifest.identity as Identity }
      : null;
  } catch {
    return null;
  }
}

/** In one step: a reader sees the old file or the new one. */
async function writeWhole(path: string, content: string | Uint8Array): Promise<void> {
  await writeFile(`${path}.part`, content);
  await rename(`${path}.part`, path);
}

/** Drops torn, repeated and owed lines from episodes.jsonl, atomically, and says which lines stay. */
async function keepSettled(path: string, { retryErrors, onKept }: OpenOptions): Promise<{ id: string; length: number }[]> {
  const kept: { id: string; length: number }[] = [];
  const seen = new Set<string>();
  const file = await open(path, 'a');
  await file.close();
  const rewritten = await open(`${path}.part`, 'w');
  for await (const { bytes, episode } of readEpisodeLines(path)) {
    if (episode === null || seen.has(episode.id) || !isSettled(episode, retryErrors)) continue;
    seen.add(episode.id);
    await rewritten.appendFile(bytes);
    kept.push({ id: episode.id, length: bytes.length });
    onKept(episode);
  }
  await rewritten.close();
  await rename(`${path}.part`, path);
  return kept;
}

/** mkdir -p, without Node's own, which never returns below a folder such as /proc that refuses new ones with ENOENT. */
async function makeFolder(path: string): Promise<void> {
  try {
    await mkdir(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST') return;
    const parent = dirname(path);
    if (
      code !== 'ENOENT' ||
      (await access(parent).then(
        () => true,
        () => false,
      ))
    )
      throw error;
    await makeFolder(parent);
    await mkdir(path);
  }
}

function unwritable(path: string, cause: Error): DataError {
  return new DataError('the output folder cannot be written', {
    where: path,
    found: cause.message,
    remedy: 'Make room or name another with --output.',
    cause,
  });
}
