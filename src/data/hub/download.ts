// One file of a repository on this machine: from the cache, or downloaded, checked and put there.
import { mkdir, rename, rm, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { DataError } from '../../errors.js';
import { linkSnapshot, type RepositoryCache, repositoryCache, sizeOf } from './cache.js';
import { matchesEtag } from './digest.js';
import { refuseLfsPointer } from './lfs-pointer.js';
import { withLock } from './lock.js';
import type { HubOptions } from './options.js';
import { describeFile, type RemoteFile } from './remote.js';
import { type FilePin, fileUrl, type Repository } from './repository.js';
import { discardPartial, type Transfer, transfer, validatorPath } from './transfer.js';

/**
 * Path of the file in the cache, or null where the repository has no such file.
 * Throws DataError when access is refused, the content is not what was promised, or the server stays silent.
 */
export async function downloadFile(
  repository: Repository,
  commit: string,
  file: RemoteFile | { readonly path: string; readonly pin?: FilePin },
  options: HubOptions,
): Promise<string | null> {
  const cache = repositoryCache(repository, options);
  const snapshot = cache.snapshot(commit, file.path);
  if ((await sizeOf(snapshot)) !== null) return snapshot;
  const remote = 'etag' in file ? file : await describeFile(repository, commit, file.path, file.pin ?? {}, options);
  if (remote === null) return null;
  const lock = { ...(options.signal && { signal: options.signal }), onWait: () => options.onWait?.(file.path) };
  await withLock(cache.lock(remote.etag), lock, async () => {
    if ((await sizeOf(cache.blob(remote.etag))) === null) await downloadBlob(repository, commit, remote, cache, options);
  });
  await linkSnapshot(cache.blob(remote.etag), snapshot);
  return snapshot;
}

async function downloadBlob(
  repository: Repository,
  commit: string,
  remote: RemoteFile,
  cache: RepositoryCache,
  options: HubOptions,
): Promise<void> {
  const blob = cache.blob(remote.etag);
  const job: Transfer = {
    repository,
    url: fileUrl(repository, commit, remote.path, options),
    partial: `${blob}.ssr-incomplete`,
    sizeBytes: remote.sizeBytes,
  };
  await mkdir(dirname(blob), { recursive: true });
  await checkSpace(job);
  const { pieced } = await transfer(job, options);
  try {
    await verify(job, remote);
  } catch (error) {
    await discardPartial(job);
    // Pieces of two versions may be what is wrong; a copy in one piece is the proof.
    if (!pieced) throw error;
    await transfer(job, options);
    await verify(job, remote).catch(async (second: unknown) => {
      await discardPartial(job);
      throw second;
    });
  }
  await rename(job.partial, blob);
  await rm(validatorPath(job), { force: true });
}

async function verify({ partial, url }: Transfer, { etag, sizeBytes }: RemoteFile): Promise<void> {
  await refuseLfsPointer(partial, url);
  const size = await sizeOf(partial);
  if (sizeBytes !== null && size !== sizeBytes) {
    throw new DataError('the file has the wrong size', { where: url, expected: `${sizeBytes} bytes`, found: `${size} bytes` });
  }
  const digest = await matchesEtag(partial, etag);
  if (digest !== null && !digest.matches) {
    throw new DataError('the file has the wrong checksum', {
      where: url,
      expected: etag,
      found: digest.found,
      remedy: 'It was thrown away. Run the command again; should this repeat, the file at the source has changed.',
    });
  }
}

async function checkSpace({ partial, sizeBytes }: Transfer): Promise<void> {
  if (sizeBytes === null) return;
  const { bavail, bsize } = await statfs(dirname(partial));
  const needed = sizeBytes - ((await sizeOf(partial)) ?? 0);
  if (bavail * bsize < needed) {
    throw new DataError('not enough disk space', {
      where: dirname(partial),
      expected: `${needed} bytes`,
      found: `${bavail * bsize} bytes`,
      remedy: 'Make room, or move the cache with HF_HOME.',
    });
  }
}
