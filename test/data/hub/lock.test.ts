import { readdir, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { withLock } from '../../../src/data/hub/lock.js';
import { temporaryFolder } from '../support.js';

describe('a lock between processes', () => {
  it('lets one in at a time and goes when the last is done', async () => {
    const folder = await temporaryFolder();
    let inside = 0;
    let most = 0;
    let waits = 0;
    const enter = () =>
      withLock(join(folder, 'a.lock'), { pollMs: 2, onWait: () => waits++ }, async () => {
        most = Math.max(most, ++inside);
        await sleep(10);
        inside--;
      });
    await Promise.all([enter(), enter(), enter()]);
    expect([most, waits]).toEqual([1, 2]);
    expect(await readdir(folder)).toEqual([]);
  });

  it('is taken over from a process that died, and only from one', async () => {
    const folder = await temporaryFolder();
    const path = join(folder, 'a.lock');
    await writeFile(path, 'of a dead process');
    const long = new Date(Date.now() - 60_000);
    await utimes(path, long, long);
    const order: string[] = [];
    const enter = (name: string) =>
      withLock(path, { pollMs: 2, staleMs: 30_000 }, async () => {
        order.push(`${name} in`);
        await sleep(5);
        order.push(`${name} out`);
      });
    await Promise.all([enter('a'), enter('b')]);
    expect(order.map((event) => event.slice(2))).toEqual(['in', 'out', 'in', 'out']);
    expect(await readdir(folder)).toEqual([]);
  });

  it('is kept alive by its holder, and let go when the work fails', async () => {
    const path = join(await temporaryFolder(), 'a.lock');
    const failing = withLock(path, { staleMs: 60, pollMs: 5 }, async () => {
      await sleep(200);
      throw new Error('failed');
    });
    await sleep(10);
    const started = performance.now();
    const second = withLock(path, { staleMs: 60, pollMs: 5 }, async () => performance.now() - started);
    await expect(failing).rejects.toThrow('failed');
    expect(await second).toBeGreaterThan(150);
  });
});
