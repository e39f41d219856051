// The Python client's cache layout: blobs/<etag>, refs/<branch> (a commit), snapshots/<commit>/<path> (links to blobs).
import { lstat, mkdir, readFile, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { DataError } from '../../errors.js';
import type { HubOptions } from './options.js';
import type { Repository } from './repository.js';

export interface RepositoryCache {
  readonly folder: string;
  blob(etag: string): string;
  lock(etag: string): string;
  snapshot(commit: string, path: string): string;
  /** A list of all files of a commit, which never changes. */
  tree(commit: string): string;
  ref(revision: string): string;
}

export function repositoryCache(repository: Repository, options: HubOptions): RepositoryCache {
  const root = repository.host === 'github' ? options.githubCacheFolder : options.cacheFolder;
  const name = `${repository.host === 'github' ? 'github' : 'datasets'}--${repository.id.replaceAll('/', '--')}`;
  const folder = join(root, name);
  return {
    folder,
    blob: (etag) => join(folder, 'blobs', etag),
    lock: (etag) => join(root, '.locks', name, `${etag}.ssr.lock`),
    snapshot: (commit, path) => join(folder, 'snapshots', commit, ...safeParts(path)),
    tree: (commit) => join(folder, 'trees', `${commit}.json`),
    ref: (revision) => join(folder, 'refs', ...safeParts(revision)),
  };
}

/** Parts of a repository's path; throws DataError where it would leave the folder. */
export function safeParts(path: string): string[] {
  const parts = path.split('/').filter((part) => part !== '' && part !== '.');
  if (parts.length === 0 || parts.includes('..') || path.includes('\0') || path.includes('\\')) {
    throw new DataError('a path leaves its folder', { found: JSON.stringify(path), expected: 'a relative path without ".."' });
  }
  return parts;
}

/** Makes the snapshot's name for a blob; a copy made by another process is as good. */
export async function linkSnapshot(blob: string, snapshot: string): Promise<void> {
  await mkdir(dirname(snapshot), { recursive: true });
  if (await lstat(snapshot).catch(() => null)) await rm(snapshot, { force: true });
  await symlink(relative(dirname(snapshot), blob), snapshot).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error;
  });
}

export async function sizeOf(path: string): Promise<number | null> {
  return (await stat(path).catch(() => null))?.size ?? null;
}

export async function readRef(cache: RepositoryCache, revision: string): Promise<string | null> {
  const text = await readFile(cache.ref(revision), 'utf8').catch(() => null);
  return text?.trim() || null;
}

/** Writes a file whole or not at all. */
export async function writeWhole(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  const temporary = `${path}.${Math.random().toString(36).slice(2)}.tmp`;
  await writeFile(temporary, text);
  await rename(temporary, path);
}
