import { type ChildProcess, spawn } from 'node:child_process';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { DataError, UsageError } from '../../../src/errors.js';
import { exportStore, importStore, storeStatistics } from '../../../src/tools/recording/snapshot.js';
import { entryPath, openStore } from '../../../src/tools/recording/store.js';
import { temporaryFolder } from '../support/pictures.js';

const writer = fileURLToPath(new URL('./writer.ts', import.meta.url));

function startWriter(folder: string, name: string, count: number): { child: ChildProcess; keys: string[]; ended: Promise<void> } {
  const child = spawn(process.execPath, ['--import', 'tsx', writer, folder, name, String(count)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const keys: string[] = [];
  let rest = '';
  child.stdout?.on('data', (chunk: Buffer) => {
    const lines = (rest + chunk.toString()).split('\n');
    rest = lines.pop() ?? '';
    keys.push(...lines.map((line) => line.split(' ')[0] ?? ''));
  });
  return { child, keys, ended: new Promise((resolve) => child.on('close', () => resolve())) };
}

describe('a store', () => {
  it('takes two processes at once without a torn or lost entry', async () => {
    const folder = await temporaryFolder();
    const writers = ['one', 'two'].map((name) => startWriter(folder, name, 60));
    await Promise.all(writers.map(({ ended }) => ended));
    expect(writers.map(({ keys }) => keys.length)).toEqual([60, 60]);
    const store = await openStore(folder, { create: false });
    for (const key of writers[0]!.keys) {
      const entry = await store.read(key);
      // Whole, by one of the two, and its data is there.
      expect(entry?.results[0]?.text).toMatch(/^(?:by one |by two )+$/);
      expect(await store.readBlob(entry!.raw[0]!.sha256)).toHaveLength(100_000);
    }
    expect(await storeStatistics(folder)).toMatchObject({ entries: 60, providers: [{ answered: 40, failed: 20 }] });
    expect(await readdir(join(folder, 'tmp'))).toEqual([]);
  }, 60_000);

  it('holds every finished entry after kill -9 while writing', async () => {
    const folder = await temporaryFolder();
    const { child, keys, ended } = startWriter(folder, 'one', 100_000);
    while (keys.length < 25) await new Promise((resolve) => setTimeout(resolve, 5));
    child.kill('SIGKILL');
    await ended;
    const store = await openStore(folder, { create: true });
    for (const key of keys) {
      const entry = await store.read(key);
      expect(entry?.results[0]?.text).toHaveLength('by one '.length * 5_000);
      await store.readBlob(entry!.raw[0]!.sha256);
    }
    // What lies there is readable as a whole.
    expect((await storeStatistics(folder)).entries).toBeGreaterThanOrEqual(keys.length);
  }, 60_000);

  it('is not made by a replay, nor in a folder of other things', async () => {
    const folder = await temporaryFolder();
    await expect(openStore(join(folder, 'missing'), { create: false })).rejects.toThrow(UsageError);
    await writeFile(join(folder, 'thesis.txt'), 'x');
    await expect(openStore(folder, { create: true })).rejects.toThrow('the folder holds other files');
  });

  it('names a damaged file', async () => {
    const folder = await temporaryFolder();
    const { keys, ended } = startWriter(folder, 'one', 1);
    await ended;
    const path = entryPath(folder, keys[0]!, 'answered');
    await writeFile(path, (await readFile(path, 'utf8')).slice(0, 100));
    const store = await openStore(folder, { create: false });
    await expect(store.read(keys[0]!)).rejects.toThrow(DataError);
    await expect(store.read(keys[0]!)).rejects.toThrow(path);
  });
});

describe('a snapshot', () => {
  it('moves a store; equal stores make equal archives; what is there stays', async () => {
    const [from, to, files] = [await temporaryFolder(), await temporaryFolder(), await temporaryFolder()];
    await startWriter(from, 'one', 6).ended;
    const [first, second] = [join(files, 'a.tar.gz'), join(files, 'b.tar.gz')];
    expect(await exportStore(from, first)).toEqual({ entries: 6, blobs: 6 });
    await exportStore(from, second);
    expect(Buffer.compare(await readFile(first), await readFile(second))).toBe(0);
    expect(await importStore(first, to)).toEqual({ entries: 6, blobs: 6, kept: 0 });
    expect(await storeStatistics(to)).toEqual(await storeStatistics(from));
    expect(await importStore(first, to)).toMatchObject({ kept: 4 });
  });

  it('is refused when cut or altered', async () => {
    const [from, to, files] = [await temporaryFolder(), await temporaryFolder(), await temporaryFolder()];
    await startWriter(from, 'one', 3).ended;
    const archive = join(files, 'a.tar.gz');
    await exportStore(from, archive);
    const bytes = await readFile(archive);
    await writeFile(archive, bytes.subarray(0, bytes.length - 200));
    await expect(importStore(archive, to)).rejects.toThrow(DataError);
    await writeFile(archive, 'no archive');
    await expect(importStore(archive, to)).rejects.toThrow('the snapshot cannot be read');
    await expect(importStore(join(files, 'none'), to)).rejects.toThrow('ENOENT');
  });
});
