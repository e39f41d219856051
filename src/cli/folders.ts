// Folders and files that the system refuses, as errors of one line.
import { mkdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { DataError } from '../errors.js';

/**
 * mkdir -p, without Node's own, which never returns below a folder such as /proc that refuses new ones with ENOENT. Throws DataError
 * when the folder cannot be made.
 */
export async function makeFolder(path: string): Promise<void> {
  if ((await stat(path).catch(() => null))?.isDirectory()) return;
  const parent = dirname(path);
  if (parent !== path) await makeFolder(parent);
  await mkdir(path).catch((error: NodeJS.ErrnoException) => {
    throw new DataError('the folder cannot be made', { where: path, found: error.code ?? error.message, cause: error });
  });
}

/** Refusals of the system (no space, no permission) become DataErrors in the system's own words. */
export async function withSystemErrors<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    if (error instanceof Error && 'syscall' in error) throw new DataError(error.message, { cause: error });
    throw error;
  }
}
