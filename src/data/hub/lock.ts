// A lock file between processes: whoever creates it holds it, and shows that it lives by touching it.
import { link, mkdir, open, readFile, rename, rm, stat, utimes } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

export interface LockOptions {
  /** A lock that was not touched for this long belonged to a process that died. */
  readonly staleMs?: number;
  readonly pollMs?: number;
  readonly onWait?: () => void;
  readonly signal?: AbortSignal;
}

/** Runs while holding the lock; waits for another holder as long as that one lives. */
export async function withLock<T>(path: string, options: LockOptions, run: () => Promise<T>): Promise<T> {
  const { staleMs = 30_000, pollMs = 200 } = options;
  const token = `${Date.now()}-${Math.random()}`;
  await mkdir(dirname(path), { recursive: true });
  for (let told = false; !(await create(path, token)); told = true) {
    if (!told) options.onWait?.();
    await breakStale(path, staleMs);
    await sleep(pollMs, undefined, options.signal && { signal: options.signal });
  }
  const beat = setInterval(() => void touch(path), staleMs / 6);
  beat.unref();
  try {
    return await run();
  } finally {
    clearInterval(beat);
    if ((await readFile(path, 'utf8').catch(() => null)) === token) await rm(path, { force: true });
  }
}

async function create(path: string, token: string): Promise<boolean> {
  try {
    const file = await open(path, 'wx');
    await file.writeFile(token);
    await file.close();
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

async function touch(path: string): Promise<void> {
  const now = new Date();
  await utimes(path, now, now).catch(() => undefined);
}

/** Only one waiter's rename succeeds; should it have caught a fresh lock instead of the dead one, the lock is put back. */
async function breakStale(path: string, staleMs: number): Promise<void> {
  const token = await readFile(path, 'utf8').catch(() => null);
  const seen = await stat(path).catch(() => null);
  if (token === null || seen === null || Date.now() - seen.mtimeMs < staleMs) return;
  const aside = `${path}.${Math.random().toString(36).slice(2)}`;
  try {
    await rename(path, aside);
  } catch {
    return;
  }
  if ((await readFile(aside, 'utf8').catch(() => null)) !== token) await link(aside, path).catch(() => undefined);
  await rm(aside, { force: true });
}
