// A folder of recordings that several processes may write at once: every file is written elsewhere, flushed, and put in place whole.
//   store.json · entries/<first two digits>/<key>.<status>.json · blobs/<first two digits>/<sha256> · tmp/
// An answer is never replaced: of two processes that ask the same, the first one's answer stays and both use it. A failed or empty attempt
// is kept beside it, the latest of each, so that a failure cannot overwrite an answer.
import { createHash, randomUUID } from 'node:crypto';
import { link, mkdir, readdir, readFile, rename, rm, stat, unlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { DataError, UsageError } from '../../errors.js';
import { type Entry, type EntryStatus, entrySchema } from './entry.js';

export interface RecordingStore {
  readonly folder: string;
  /** The answer, else the latest attempt that gave none, else null. Throws DataError for a damaged file. */
  read(key: string): Promise<Entry | null>;
  /** Returns what the store holds afterwards: another process's answer where that came first. */
  write(entry: Entry): Promise<Entry>;
  readBlob(sha256: string): Promise<Uint8Array>;
  /** Returns the bytes' hash. */
  writeBlob(bytes: Uint8Array): Promise<string>;
}

/** What a process killed while writing leaves behind is swept after this time. */
const STALE_MS = 3_600_000;

/** `create`: whether a folder that does not exist is made. Throws UsageError when there is no store. */
export async function openStore(folder: string, { create }: { create: boolean }): Promise<RecordingStore> {
  const marker = join(folder, 'store.json');
  if (create) {
    await prepareFolder(folder, marker);
  } else {
    await checkMarker(marker);
  }
  return {
    folder,
    async read(key) {
      const answer = await readEntry(folder, key, 'answered');
      if (answer) return answer;
      const attempts = await Promise.all([readEntry(folder, key, 'empty'), readEntry(folder, key, 'failed')]);
      const [latest] = attempts.filter((entry) => entry !== null).sort((a, b) => (a.retrievedAt < b.retrievedAt ? 1 : -1));
      return latest ?? null;
    },
    async write(entry) {
      const path = entryPath(folder, entry.key, entry.status);
      const placed = await place(folder, path, `${JSON.stringify(entry)}\n`, { keep: entry.status === 'answered' });
      return placed ? entry : ((await readEntry(folder, entry.key, 'answered')) ?? entry);
    },
    readBlob: (sha256) => readBlob(folder, sha256),
    async writeBlob(bytes) {
      const sha256 = createHash('sha256').update(bytes).digest('hex');
      await place(folder, blobPath(folder, sha256), bytes, { keep: true });
      return sha256;
    },
  };
}

export function entryPath(folder: string, key: string, status: EntryStatus): string {
  return join(folder, 'entries', key.slice(0, 2), `${key}.${status}.json`);
}

export function blobPath(folder: string, sha256: string): string {
  return join(folder, 'blobs', sha256.slice(0, 2), sha256);
}

export function parseEntry(source: string, where: string): Entry {
  const remedy = 'Remove the file to record it again.';
  let json: unknown;
  try {
    json = JSON.parse(source);
  } catch (cause) {
    throw new DataError('a damaged recording', { where, expected: 'JSON', remedy, cause });
  }
  const parsed = entrySchema.safeParse(json);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new DataError('a damaged recording', { where, found: `${issue?.path.join('.')}: ${issue?.message}`, remedy });
}

async function prepareFolder(folder: string, marker: string): Promise<void> {
  const present = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [] as string[];
    throw new UsageError('cannot use the tool store', { where: folder, found: error.code ?? error.message, cause: error });
  });
  await mkdir(join(folder, 'tmp'), { recursive: true });
  if (present.includes('store.json')) {
    await checkMarker(marker);
  } else {
    if (present.some((name) => !['tmp', 'entries', 'blobs'].includes(name))) {
      throw new UsageError('the folder holds other files', { where: folder, expected: 'a tool store or an empty folder' });
    }
    await place(folder, marker, '{"schema":1}\n', { keep: true });
  }
  await sweep(join(folder, 'tmp'));
}

async function checkMarker(marker: string): Promise<void> {
  const source = await readFile(marker, 'utf8').catch((cause: unknown) => {
    throw new UsageError('no tool store', {
      where: dirname(marker),
      expected: 'a folder that --tools record has written',
      cause,
    });
  });
  if (source.trim() !== '{"schema":1}') {
    throw new DataError('an unknown tool store', { where: marker, expected: '{"schema":1}', found: source.trim().slice(0, 80) });
  }
}

async function sweep(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    const path = join(folder, name);
    const found = await stat(path).catch(() => null);
    if (found && Date.now() - found.mtimeMs > STALE_MS) await rm(path, { force: true });
  }
}

/** Puts a file in place in one step; with `keep`, one that is there already stays and the answer is false. */
async function place(folder: string, path: string, content: string | Uint8Array, { keep }: { keep: boolean }): Promise<boolean> {
  if (keep && (await exists(path))) return false;
  const temporary = join(folder, 'tmp', randomUUID());
  await mkdir(dirname(path), { recursive: true });
  await writeFile(temporary, content, { flush: true });
  if (!keep) {
    await rename(temporary, path);
    return true;
  }
  try {
    await link(temporary, path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    // A file system without hard links: the later of two equal calls wins there.
    await rename(temporary, path);
    return true;
  } finally {
    await unlink(temporary).catch(() => undefined);
  }
}

function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}

async function readEntry(folder: string, key: string, status: EntryStatus): Promise<Entry | null> {
  const path = entryPath(folder, key, status);
  const source = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw new DataError('cannot read a recording', { where: path, found: error.code ?? error.message, cause: error });
  });
  return source === null ? null : parseEntry(source, path);
}

async function readBlob(folder: string, sha256: string): Promise<Uint8Array> {
  const path = blobPath(folder, sha256);
  const bytes = await readFile(path).catch((cause: unknown) => {
    throw new DataError('a recording lacks its data', { where: path, cause });
  });
  const found = createHash('sha256').update(bytes).digest('hex');
  if (found === sha256) return bytes;
  throw new DataError('a damaged recording', { where: path, expected: `SHA-256 ${sha256}`, found });
}
