// One process per results folder: a lock file that holds the owner's process id.
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { UsageError } from '../errors.js';

/** Takes the folder, also from a process that has died, and returns how to give it back. Throws UsageError when it is taken. */
export async function lockFolder(folder: string): Promise<() => Promise<void>> {
  const path = join(folder, 'run.lock');
  for (let attempt = 0; attempt < 2; attempt++) {
    try {
      await writeFile(path, String(process.pid), { flag: 'wx' });
      return () => rm(path, { force: true });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
      const owner = Number(await readFile(path, 'utf8').catch(() => ''));
      if (isAlive(owner)) break;
      await rm(path, { force: true });
    }
  }
  throw new UsageError('another process is writing this run', {
    where: folder,
    remedy: `Wait for it, or remove ${path} if no ssr process is left.`,
  });
}

function isAlive(pid: number): boolean {
  if (!Number.isInteger(pid) || pid <= 0) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
