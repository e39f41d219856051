import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import sharp from 'sharp';
import { beforeAll, describe, expect, it } from 'vitest';
import { picture } from '../../../scripts/fixtures/pictures.js';
import { put, writeJson, writeJsonLines, writeZip } from '../../../scripts/fixtures/write.js';
import { addImageSearches } from '../../../src/data/image-search/convert.js';
import { readPickle } from '../../../src/data/image-search/pickle.js';
import { type CachedSearch, deepEyesSearches, fvqaPickleSearches, marsSearches } from '../../../src/data/image-search/sources.js';
import { openPrepared } from '../../../src/data/loader.js';
import { exportMars } from '../../../src/data/mars-export.js';
import { folderFiles } from '../../../src/data/source-files.js';
import { verifyPrepared } from '../../../src/data/verify.js';
import { DataError, ToolError, UsageError } from '../../../src/errors.js';
import { createPrecomputedSearch } from '../../../src/tools/image-search/precomputed.js';
import { type Prepared, prepareFixture, temporaryFolder } from '../support.js';

const golden = new URL('../../golden/data/', import.meta.url).pathname;
let root: string;
let fvqa: Prepared;
beforeAll(async () => {
  root = await temporaryFolder();
  fvqa = await prepareFixture('fvqa-test', root);
});

async function all(searches: AsyncIterable<CachedSearch>): Promise<CachedSearch[]> {
  const list: CachedSearch[] = [];
  for await (const search of searches) list.push(search);
  return list;
}

describe("FVQA's pickle", () => {
  it.each([2, 4, 5])('of protocol %i gives titles with their thumbnails', async (protocol) => {
    const searches = await all(fvqaPickleSearches(join(golden, `image_search_cache_p${protocol}.pkl`)));
    expect(searches.map(({ id }) => id)).toEqual(['fvqa_test_0', 'fvqa_test_2', 'fvqa_test_99', 'large_number']);
    const pages = searches[0]?.pages ?? [];
    expect(pages.map(({ title, thumbnail, thumbnailUrl }) => [title, thumbnail ? 'picture' : thumbnailUrl])).toEqual([
      ['A castle – Wikipedia', 'https://example.org/thumbnail?q=tbn:1'],
      ['Castle', 'picture'],
      ['Lost', undefined],
      ['Grey castle', 'picture'],
      ['Castle sign', 'picture'],
    ]);
    const pixels = async (i: number) => {
      const { data, info } = await sharp(pages[i]?.thumbnail).raw().toBuffer({ resolveWithObject: true });
      return [info.width, info.height, ...data.subarray(0, 3)];
    };
    expect(await pixels(1)).toEqual([8, 6, 10, 20, 30]);
    expect((await pixels(3)).slice(0, 3)).toEqual([5, 7, 200]);
    expect(await pixels(4)).toEqual([4, 2, 250, 120, 10]);
  });

  it('is refused when it names anything that could act', async () => {
    await expect(all(fvqaPickleSearches(join(golden, 'hostile.pkl')))).rejects.toThrow(
      /class that is not allowed.*found (posix|nt) system.*Nothing of it was executed/,
    );
  });

  it('is refused when it is torn, empty, or uses other instructions', async () => {
    const whole = await readFile(join(golden, 'image_search_cache_p4.pkl'));
    for (let length = 0; length < whole.length; length += 17) {
      expect(() => readPickle(whole.subarray(0, length), [], 'cut')).toThrow(/cut/);
    }
    const persistent = Buffer.from('\x80\x04X\x01\x00\x00\x00aQ.', 'latin1');
    expect(() => readPickle(persistent, [], 'p')).toThrow(/instruction that is not allowed.*found 0x51/);
    expect(() => readPickle(Buffer.from('\x80\x04(e.', 'latin1'), [], 'p')).toThrow(/expected a value on the stack/);
    expect(() => readPickle(Buffer.from('\x80\x04h\x07.', 'latin1'), [], 'p')).toThrow(/expected a remembered value/);
  });

  it('never fails but with a reason, wherever a byte is wrong', async () => {
    const whole = await readFile(join(golden, 'image_search_cache_p4.pkl'));
    const file = join(root, 'damaged.pkl');
    for (let at = 0; at < whole.length; at += 2) {
      const copy = Buffer.from(whole);
      copy.writeUInt8(copy.readUInt8(at) ^ (1 + (at % 255)), at);
      await writeFile(file, copy);
      await all(fvqaPickleSearches(file)).catch((error: unknown) => expect(error).toBeInstanceOf(DataError));
    }
  });

  it('keeps whole numbers of any size', () => {
    const long = Buffer.from('\x80\x02\x8a\x02\xff\x7f.', 'latin1');
    expect(readPickle(long, [], 'p')).toBe(32767);
    expect(readPickle(Buffer.from('\x80\x02\x8a\x01\xff.', 'latin1'), [], 'p')).toBe(-1);
    expect(readPickle(Buffer.from('\x80\x02\x8a\x00.', 'latin1'), [], 'p')).toBe(0);
    expect(readPickle(Buffer.from('\x80\x02\x8a\x09\x01\x00\x00\x00\x00\x00\x00\x00\x01.', 'latin1'), [], 'p')).toBe(
      2n ** 64n + 1n,
    );
  });
});

describe('a cache in a prepared folder', () => {
  it('answers searches for the pictures of its questions', async () => {
    const summary = await addImageSearches(fvqa.folder, fvqaPickleSearches(join(golden, 'image_search_cache_p4.pkl')));
    expect(summary).toEqual({
      questions: 4,
      missing: ['fvqa_test_1', 'fvqa_test_3'],
      pages: 6,
      thumbnails: 3,
      withoutThumbnail: 3,
    });
    expect((await verifyPrepared(fvqa.folder)).faults).toEqual([]);
    const benchmark = await openPrepared(fvqa.folder);
    const search = await createPrecomputedSearch(fvqa.folder, 4);
    const image = async (id: string) => (await benchmark.load(id)).images[0]!;
    const found = await search.ask(await image('fvqa_test_0'));
    expect(found.results.map(({ title, thumbnail }) => [title, thumbnail?.width])).toEqual([
      ['A castle – Wikipedia', undefined],
      ['Castle', 8],
      ['Lost', undefined],
      ['Grey castle', 5],
    ]);
    await expect(search.ask(await image('fvqa_test_1'))).rejects.toThrow(ToolError);
  });

  it('is replaced by another, leaving no thumbnails behind', async () => {
    const folder = join(root, 'deepeyes-cache');
    const cache = {
      fvqa_test_1: {
        tool_returned_web_title: ['First', 'Second', null],
        cached_images_path: ['/home/a/b/t1.jpg', null, 'lost.jpg'],
      },
    };
    await writeJson(join(folder, 'cache.json'), cache);
    await writeZip(join(folder, 'cached_images/train.zip'), {
      'train/t0.jpg': await picture(1),
      'train/t1.jpg': await picture(2, 'jpeg', 20),
    });
    const summary = await addImageSearches(fvqa.folder, deepEyesSearches(join(folder, 'cache.json'), await folderFiles(folder)));
    expect(summary).toMatchObject({ missing: ['fvqa_test_0', 'fvqa_test_2', 'fvqa_test_3'], pages: 3, thumbnails: 1 });
    expect((await verifyPrepared(fvqa.folder)).faults).toEqual([]);
    const search = await createPrecomputedSearch(fvqa.folder, 5);
    const image = (await (await openPrepared(fvqa.folder)).load('fvqa_test_1')).images[0]!;
    expect((await search.ask(image)).results.map(({ title, thumbnail }) => [title, thumbnail?.width])).toEqual([
      ['First', 20],
      ['Second', undefined],
      [undefined, undefined],
    ]);
  });

  it('comes from the lists of a MARS set as well', async () => {
    const folder = join(root, 'mars');
    await exportMars(await openPrepared(fvqa.folder), folder);
    const file = join(folder, 'fvqa-test', 'data.jsonl');
    const rows = (await readFile(file, 'utf8'))
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as object);
    await put(join(folder, 'fvqa-test', 'thumbs/a.jpg'), await picture(3, 'jpeg', 16));
    await writeJsonLines(
      file,
      rows.map((row, i) =>
        i === 0
          ? { ...row, image_search_title_list: ['A', 'B'], image_search_thumbnail_list: ['thumbs/none.jpg', 'thumbs/a.jpg'] }
          : row,
      ),
    );
    const searches = await all(marsSearches(join(folder, 'test_all.json'), 'fvqa-test'));
    expect(searches.map(({ id, pages }) => [id, pages.map(({ title, thumbnail }) => [title, thumbnail !== undefined])])).toEqual([
      [
        'fvqa_test_0',
        [
          ['A', false],
          ['B', true],
        ],
      ],
    ]);
  });

  it('is asked for where there is none', async () => {
    const other = await prepareFixture('visualprobe', root);
    await expect(createPrecomputedSearch(other.folder, 5)).rejects.toThrow(UsageError);
    await writeFile(join(root, 'text.pkl'), 'version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 4220000\n');
    await expect(all(fvqaPickleSearches(join(root, 'text.pkl')))).rejects.toThrow(/Git LFS pointer/);
  });
});
