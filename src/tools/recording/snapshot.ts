// Moving a tool store between machines, and telling what is in one: `ssr tools export | import | stats`.
import { createReadStream, createWriteStream } from 'node:fs';
import { readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createGzip } from 'node:zlib';
import { DataError } from '../../errors.js';
import { type Entry, keyOf } from './entry.js';
import { openStore, parseEntry, type RecordingStore } from './store.js';
import { readTar, type TarFile, writeTar } from './tar.js';

const entryName = /^entries\/[0-9a-f]{2}\/([0-9a-f]{64})\.(answered|empty|failed)\.json$/;
const blobName = /^blobs\/[0-9a-f]{2}\/([0-9a-f]{64})$/;

export interface SnapshotCounts {
  readonly entries: number;
  readonly blobs: number;
}

/** Writes `archive` (.tar.gz) whole or not at all. */
export async function exportStore(folder: string, archive: string): Promise<SnapshotCounts> {
  await openStore(folder, { create: false });
  const [blobs, entries] = [await filesOf(folder, 'blobs', blobName), await filesOf(folder, 'entries', entryName)];
  const temporary = `${archive}.part`;
  try {
    // Data first: an import that breaks off holds no entry without its data.
    await pipeline(
      Readable.from(writeTar(readFiles(folder, [...blobs, ...entries]))),
      createGzip(),
      createWriteStream(temporary),
    );
    await rename(temporary, archive);
  } finally {
    await rm(temporary, { force: true });
  }
  return { entries: entries.length, blobs: blobs.length };
}

export interface ImportCounts extends SnapshotCounts {
  /** Answers that the store had already, which stay as they are. */
  readonly kept: number;
}

/** Adds a snapshot's recordings to a store, which is made if need be. Throws DataError for whatever is not what its name says. */
export async function importStore(archive: string, folder: string): Promise<ImportCounts> {
  const store = await openStore(folder, { create: true });
  const counts = { entries: 0, blobs: 0, kept: 0 };
  const source = createReadStream(archive);
  const unpacked = source.pipe(createGunzip());
  source.on('error', (error) => unpacked.destroy(error));
  try {
    for await (const file of readTar(unpacked, archive)) await importFile(file, store, archive, counts);
  } catch (cause) {
    if (cause instanceof DataError) throw cause;
    const found = (cause as NodeJS.ErrnoException).code ?? String(cause);
    throw new DataError('the snapshot cannot be read', { where: archive, found, cause });
  }
  return counts;
}

async function importFile(
  { name, bytes }: TarFile,
  store: RecordingStore,
  archive: string,
  counts: { entries: number; blobs: number; kept: number },
): Promise<void> {
  const where = `${archive}:${name}`;
  const blob = blobName.exec(name)?.[1];
  if (blob !== undefined) {
    const found = await store.writeBlob(bytes);
    if (found !== blob) throw new DataError('damaged', { where, expected: `SHA-256 ${blob}`, found });
    counts.blobs++;
    return;
  }
  const [, key, status] = entryName.exec(name) ?? [];
  if (key === undefined) throw new DataError('not a file of a tool store', { where });
  const entry = parseEntry(Buffer.from(bytes).toString('utf8'), where);
  if (entry.key !== key || entry.status !== status || keyOf(entry.request) !== key) {
    throw new DataError('a recording under another name', { where, expected: keyOf(entry.request), found: entry.key });
  }
  if ((await store.write(entry)) === entry) counts.entries++;
  else counts.kept++;
}

export interface StoreStatistics {
  readonly providers: readonly {
    readonly kind: Entry['request']['kind'];
    readonly provider: string;
    readonly answered: number;
    readonly empty: number;
    readonly failed: number;
  }[];
  readonly entries: number;
  readonly blobs: number;
  readonly bytes: number;
  /** ISO 8601; null for an empty store. */
  readonly firstRetrieval: string | null;
  readonly lastRetrieval: string | null;
}

export async function storeStatistics(folder: string): Promise<StoreStatistics> {
  await openStore(folder, { create: false });
  const names = await filesOf(folder, 'entries', entryName);
  const blobs = await filesOf(folder, 'blobs', blobName);
  const groups = new Map<
    string,
    { kind: Entry['request']['kind']; provider: string; answered: number; empty: number; failed: number }
  >();
  const times: string[] = [];
  for (const name of names) {
    const path = join(folder, name);
    const { request, status, retrievedAt } = parseEntry(await readFile(path, 'utf8'), path);
    const { kind, provider } = request;
    const group = groups.get(`${kind} ${provider}`) ?? { kind, provider, answered: 0, empty: 0, failed: 0 };
    group[status]++;
    groups.set(`${kind} ${provider}`, group);
    times.push(retrievedAt);
  }
  times.sort();
  return {
    providers: [...groups.keys()].sort().flatMap((name) => groups.get(name) ?? []),
    entries: names.length,
    blobs: blobs.length,
    bytes: await totalBytes(folder, [...names, ...blobs]),
    firstRetrieval: times[0] ?? null,
    lastRetrieval: times.at(-1) ?? null,
  };
}

/** Relative names in a fixed order; anything else in the folder is not part of the store. */
async function filesOf(folder: string, part: string, pattern: RegExp): Promise<string[]> {
  const names = await readdir(join(folder, part), { recursive: true }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [] as string[];
    throw error;
  });
  return names
    .map((name) => `${part}/${name.replaceAll('\\', '/')}`)
    .filter((name) => pattern.test(name))
    .sort();
}

async function* readFiles(folder: string, names: readonly string[]): AsyncGenerator<TarFile> {
  for (const name of names) yield { name, bytes: await readFile(join(folder, name)) };
}

async function totalBytes(folder: string, names: readonly string[]): Promise<number> {
  let total = 0;
  for (const name of names) total += (await stat(join(folder, name))).size;
  return total;
}
