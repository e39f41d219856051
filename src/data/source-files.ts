// The files of a data set's source, wherever they are: a repository that is downloaded from, or a folder that the user has.
import { readdir, readFile, stat } from 'node:fs/promises';
import { basename, join, relative, sep } from 'node:path';
import { DataError } from '../errors.js';
import { safeParts } from './hub/cache.js';
import { downloadFile } from './hub/download.js';
import type { HubOptions } from './hub/options.js';
import { listFiles, type RemoteFile, resolveCommit } from './hub/remote.js';
import { describeRepository, type FilePin, type Repository } from './hub/repository.js';
import { openZip, type ZipFile } from './zip.js';

export interface SourceFiles {
  /** For messages: "CaraJ7/MMSearch at 0123abc" or a folder. */
  readonly description: string;
  /** The commit, or null for a folder of the user's. */
  readonly revision: string | null;
  /** Paths of all files, with `/` between parts. */
  list(): Promise<readonly string[]>;
  /** Where the file lies on this machine, or null when the source has no such file. */
  locate(path: string): Promise<string | null>;
  /** A picture's bytes, from a file or out of an archive; null when the source has no such file. */
  read(path: string): Promise<Uint8Array | null>;
}

/** Files of a repository, downloaded when asked for. */
export async function repositoryFiles(
  repository: Repository,
  pins: Readonly<Record<string, FilePin>>,
  options: HubOptions,
): Promise<SourceFiles> {
  const commit = await resolveCommit(repository, options);
  let tree: Promise<ReadonlyMap<string, RemoteFile>> | undefined;
  const readTree = async (): Promise<ReadonlyMap<string, RemoteFile>> => {
    if (repository.host === 'github') throw new DataError('the files of this source cannot be listed', { where: repository.id });
    return new Map((await listFiles(repository, commit, options)).map((file) => [file.path, file]));
  };
  const locate = async (path: string): Promise<string | null> => {
    const pin = pins[path];
    // Once the tree has been read it knows every file, which saves a request for each.
    const known = tree === undefined || pin !== undefined ? null : (await tree).get(path);
    if (known === undefined) return null;
    return downloadFile(repository, commit, known ?? { path, ...(pin && { pin }) }, options);
  };
  return {
    description: `${describeRepository(repository)} at ${commit}`,
    revision: commit,
    async list() {
      tree ??= readTree();
      return [...(await tree).keys()];
    },
    locate,
    read: async (path) => readWhere(await locate(path)),
  };
}

/**
 * Files that the user already has. A path is looked for as it is, then by its ending: people keep only the part they downloaded,
 * so `MAT-Benchmark/MAT-Search.json` is also found as `MAT-Search.json`. Pictures are found inside zip archives as well.
 */
export async function folderFiles(folder: string): Promise<SourceFiles> {
  const info = await stat(folder).catch(() => null);
  if (!info?.isDirectory())
    throw new DataError('no such folder', { where: folder, expected: 'a folder with the files of the source' });
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const paths = entries
    .filter((entry) => !entry.isDirectory())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)).split(sep).join('/'))
    .sort();
  const find = pathFinder(paths);
  let archives: Promise<readonly Archive[]> | undefined;
  const locate = async (path: string): Promise<string | null> => {
    const found = find(path);
    return found === null ? null : join(folder, found);
  };
  return {
    description: folder,
    revision: null,
    list: async () => paths,
    locate,
    async read(path) {
      const local = await locate(path);
      if (local !== null) return readWhere(local);
      archives ??= Promise.all(paths.filter((name) => name.endsWith('.zip')).map((name) => openArchive(join(folder, name))));
      for (const { zip, find: findEntry } of await archives) {
        const entry = findEntry(path);
        if (entry !== null) return zip.read(entry);
      }
      return null;
    },
  };
}

interface Archive {
  readonly zip: ZipFile;
  readonly find: (path: string) => string | null;
}

async function openArchive(path: string): Promise<Archive> {
  const zip = await openZip(path);
  return { zip, find: pathFinder(zip.names) };
}

/** The path itself, else the longest ending of it, else the only file of that name. */
function pathFinder(paths: readonly string[]): (path: string) => string | null {
  const known = new Set(paths);
  const byName = new Map<string, string[]>();
  for (const path of paths) byName.set(basename(path), [...(byName.get(basename(path)) ?? []), path]);
  return (path) => {
    const parts = safeParts(path);
    for (let skipped = 0; skipped < parts.length; skipped++) {
      const ending = parts.slice(skipped).join('/');
      if (known.has(ending)) return ending;
    }
    const alike = byName.get(parts.at(-1) ?? '') ?? [];
    return alike.length === 1 ? (alike[0] ?? null) : null;
  };
}

async function readWhere(path: string | null): Promise<Uint8Array | null> {
  return path === null ? null : readFile(path);
}
