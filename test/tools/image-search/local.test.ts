import sharp from 'sharp';
import { beforeAll, describe, expect, it } from 'vitest';
import { DataError } from '../../../src/errors.js';
import { createLocalImageSearch, type IndexedPicture } from '../../../src/tools/image-search/local.js';
import type { Image } from '../../../src/types.js';
import { randomPicture, toImage } from './pictures.js';

const side = 192;
let images: Image[];
let pictures: IndexedPicture[];

beforeAll(async () => {
  images = await Promise.all(Array.from({ length: 60 }, (_, seed) => randomPicture(seed, side)));
  pictures = images.map((image, i) => ({ title: `picture ${i}`, load: async () => image }));
});

describe('local image search', () => {
  it('finds each picture itself first', async () => {
    const search = createLocalImageSearch(pictures, { results: 1 });
    for (const [i, image] of images.entries()) expect(await search.search(image)).toEqual([{ title: `picture ${i}` }]);
  });

  it.each([
    ['half its sides', 96, 64, 32],
    ['three quarters', 144, 24, 48],
    ['three quarters between two windows', 144, 12, 36],
    ['nine tenths', 172, 3, 17],
  ])('finds the picture that a cut of %s came from', async (_, size, left, top) => {
    const search = createLocalImageSearch(pictures, { results: 1 });
    for (const [i, image] of images.entries()) {
      const bytes = await sharp(image.bytes).extract({ left, top, width: size, height: size }).png().toBuffer();
      expect(await search.search(toImage(bytes, size, size))).toEqual([{ title: `picture ${i}` }]);
    }
  });

  it('finds a picture again after JPEG compression and resizing', async () => {
    const search = createLocalImageSearch(pictures, { results: 1 });
    for (const [i, image] of images.entries()) {
      const bytes = await sharp(image.bytes).resize(100, 100).jpeg({ quality: 40 }).toBuffer();
      expect(await search.search(toImage(bytes, 100, 100))).toEqual([{ title: `picture ${i}` }]);
    }
  });

  it('returns as many results as asked, equal ones in the order given', async () => {
    const [first, second] = images as [Image, Image];
    const twins = ['b', 'a', 'c'].map((title) => ({ title, load: async () => (title === 'c' ? second : first) }));
    const search = createLocalImageSearch(twins, { results: 2 });
    expect(await search.search(first)).toEqual([{ title: 'b' }, { title: 'a' }]);
    expect(await createLocalImageSearch([], { results: 2 }).search(first)).toEqual([]);
  });

  it('shows thumbnails when told to', async () => {
    const search = createLocalImageSearch(pictures, { results: 1, thumbnails: true });
    expect(await search.search(images[3] as Image)).toEqual([{ title: 'picture 3', thumbnail: images[3] }]);
  });

  it('builds its index once, however many searches wait for it', async () => {
    let loads = 0;
    const counted = pictures.map((picture) => ({
      ...picture,
      load() {
        loads++;
        return picture.load();
      },
    }));
    const search = createLocalImageSearch(counted, { results: 1 });
    expect(loads).toBe(0);
    await Promise.all(images.slice(0, 5).map((image) => search.search(image)));
    expect(loads).toBe(pictures.length);
  });

  it('answers for a picture of one colour, which resembles nothing', async () => {
    const flat = await sharp({ create: { width: 50, height: 50, channels: 3, background: '#777777' } })
      .png()
      .toBuffer();
    expect(await createLocalImageSearch(pictures, { results: 2 }).search(toImage(flat, 50, 50))).toHaveLength(2);
  });

  it('names an unreadable picture of the index', async () => {
    const broken = { title: 'x', load: async () => ({ ...(images[0] as Image), bytes: Buffer.from('none'), sha256: 'beef' }) };
    const search = createLocalImageSearch([...pictures, broken], { results: 2 });
    await expect(search.search(images[0] as Image)).rejects.toThrow(DataError);
    await expect(search.search(images[0] as Image)).rejects.toThrow('image beef: the picture cannot be decoded');
  });

  it('can be aborted without harm to the index', async () => {
    const search = createLocalImageSearch(pictures, { results: 1 });
    const controller = new AbortController();
    const aborted = search.search(images[0] as Image, controller.signal);
    controller.abort();
    await expect(aborted).rejects.toThrow('abort');
    expect(await search.search(images[1] as Image)).toEqual([{ title: 'picture 1' }]);
  });
});
