// Whether a results folder can be used, found out before any work and without creating anything.
import { constants } from 'node:fs';
import { access, readdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { DataError, UsageError } from '../errors.js';
import { readRunManifest } from './run-folder.js';

/** Throws UsageError for a folder with files that are not a run's, DataError for one that cannot be written. */
export async function checkOutput(folder: string): Promise<void> {
  const inside = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw new DataError('cannot use the output folder', { where: folder, found: error.code ?? error.message, cause: error });
  });
  const foreign = (inside ?? []).filter((name) => name !== 'run.lock' && !name.endsWith('.part'));
  if (foreign.length > 0 && (await readRunManifest(folder)) === null) {
    throw new UsageError('the output folder holds files that are not a run', {
      where: folder,
      found: foreign.slice(0, 3).join(', '),
      remedy: 'Name another with --output.',
    });
  }
  await checkWritable(folder, folder);
}

/** Looks at the nearest folder that exists. */
async function checkWritable(existing: string, folder: string): Promise<void> {
  try {
    await access(existing, constants.W_OK);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' && dirname(existing) !== existing) return checkWritable(dirname(existing), folder);
    throw new DataError('the output folder cannot be written', {
      where: folder,
      found: code ?? String(error),
      remedy: 'Name another with --output.',
      cause: error,
    });
  }
}
