import { expect, it } from 'vitest';
import { createPixelCache, type Pixels } from '../../src/tools/pixel-cache.js';

const pixels = (bytes: number): Pixels => ({ data: new Uint8Array(bytes), width: bytes, height: 1, channels: 1 });

it('decodes once while a picture fits, and forgets the one used longest ago', async () => {
  const decoded: string[] = [];
  const cache = createPixelCache(10);
  const get = (key: string, bytes = 4) =>
    cache.get(key, async () => {
      decoded.push(key);
      return pixels(bytes);
    });
  await Promise.all([get('a'), get('a')]);
  await get('b');
  await get('a');
  await get('c');
  await get('a');
  await get('b');
  expect(decoded).toEqual(['a', 'b', 'c', 'b']);
  await get('huge', 11);
  await get('huge', 11);
  expect(decoded.slice(4)).toEqual(['huge', 'huge']);
});

it('does not keep a failure', async () => {
  const cache = createPixelCache(10);
  await expect(cache.get('a', () => Promise.reject(new Error('broken')))).rejects.toThrow('broken');
  expect((await cache.get('a', async () => pixels(1))).width).toBe(1);
});
