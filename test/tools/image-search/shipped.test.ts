import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import sharp from 'sharp';
import { describe, expect, it } from 'vitest';
import { DataError, ToolError, UsageError } from '../../../src/errors.js';
import { loadImage } from '../../../src/media/image.js';
import type { Image } from '../../../src/types.js';
import { tools } from '../support/create.js';
import { picture, temporaryFolder } from '../support/pictures.js';

async function search(provider: 'precomputed' | 'manifest', path: string, image: Image, results = 5) {
  const made = await tools({ imageSearch: { provider, path, results } });
  return made.toolbox.imageSearch!.search(image);
}

describe('precomputed results', () => {
  async function prepared(image: Image, rows: unknown[]) {
    const folder = await temporaryFolder();
    await mkdir(join(folder, 'images'));
    const thumbnail = await picture('red');
    await writeFile(join(folder, `images/${thumbnail.sha256}.png`), thumbnail.bytes);
    await writeFile(join(folder, `images/${image.sha256}.png`), image.bytes);
    await writeFile(
      join(folder, 'index.jsonl'),
      `${JSON.stringify({ id: 'q1', images: [`images/${image.sha256}.png`], answers: [] })}\n`,
    );
    await writeFile(join(folder, 'image-search.jsonl'), `${JSON.stringify({ id: 'q1', results: rows })}\n`);
    return { folder, thumbnail };
  }

  it('are found by the picture, and a lost thumbnail leaves a gap', async () => {
    const red = await picture('red');
    const image = await picture('blue');
    const rows = [
      { title: 'Lost', thumbnail: `images/${'0'.repeat(64)}.png` },
      { title: 'Plain' },
      { title: 'Red', thumbnail: `images/${red.sha256}.png` },
    ];
    const { folder } = await prepared(image, rows);
    const results = await search('precomputed', folder, image);
    expect(results.map(({ title, thumbnail }) => [title, thumbnail?.sha256])).toEqual([
      ['Lost', undefined],
      ['Plain', undefined],
      ['Red', red.sha256],
    ]);
    expect(await search('precomputed', folder, image, 1)).toHaveLength(1);
  });

  it('are found for a picture that EXIF data turned when it was loaded', async () => {
    const bytes = await sharp({ create: { width: 8, height: 16, channels: 3, background: '#123' } })
      .withMetadata({ orientation: 6 })
      .jpeg()
      .toBuffer();
    const turned = await loadImage(bytes);
    const { createHash } = await import('node:crypto');
    const file: Image = { ...turned, bytes, sha256: createHash('sha256').update(bytes).digest('hex') };
    expect(turned.sha256).not.toBe(file.sha256);
    const { folder } = await prepared(file, [{ title: 'Turned' }]);
    expect(await search('precomputed', folder, turned)).toEqual([{ title: 'Turned' }]);
  });

  it('fail for a picture without results, which is no empty result', async () => {
    const { folder } = await prepared(await picture('blue'), []);
    expect(await search('precomputed', folder, await picture('blue'))).toEqual([]);
    await expect(search('precomputed', folder, await picture('green'))).rejects.toThrow(ToolError);
  });

  it('are refused before the run where a data set ships none', async () => {
    const folder = await temporaryFolder();
    await expect(tools({ imageSearch: { provider: 'precomputed', path: folder, results: 5 } })).rejects.toThrow(UsageError);
  });

  it('may not name files outside their folder', async () => {
    const { folder } = await prepared(await picture('blue'), [{ title: 'x', thumbnail: '../../secret.png' }]);
    await expect(search('precomputed', folder, await picture('blue'))).rejects.toThrow(DataError);
  });
});

describe('a manifest', () => {
  it('gives the recorded results of the very picture', async () => {
    const folder = await temporaryFolder();
    const [blue, red] = [await picture('blue'), await picture('red')];
    await writeFile(join(folder, '01.png'), red.bytes);
    const manifest = {
      image_sha256: blue.sha256,
      retrieved_at: '2026-09-21T13:17:58Z',
      provenance: 'recorded',
      results: [
        {
          title: 'Old College',
          url: 'https://example.org/college',
          source: 'Example',
          thumbnail: 'https://t.example/1',
          image_path: '01.png',
        },
        { title: 'Gone', url: 'https://example.org/gone', image_path: '02.png' },
      ],
    };
    await writeFile(join(folder, 'search.json'), JSON.stringify(manifest));
    for (const path of [join(folder, 'search.json'), folder]) {
      const results = await search('manifest', path, blue);
      expect(results[0]).toMatchObject({ title: 'Old College', url: 'https://example.org/college', source: 'Example' });
      expect(results[0]?.thumbnail?.sha256).toBe(red.sha256);
      expect(results[1]?.thumbnail).toBeUndefined();
      await expect(search('manifest', path, red)).rejects.toThrow(`image ${red.sha256}`);
    }
  });

  it.each(['{', '{"image_sha256": "abc", "results": []}', '[]x'])('must be what it says: %s', async (source) => {
    const path = join(await temporaryFolder(), 'bad.json');
    await writeFile(path, source);
    await expect(tools({ imageSearch: { provider: 'manifest', path, results: 5 } })).rejects.toThrow(DataError);
  });
});

describe('a folder of pictures', () => {
  it('is searched by likeness, titles from titles.jsonl or from the file names', async () => {
    const folder = await temporaryFolder();
    const stripes = await pattern(3);
    await writeFile(join(folder, 'Kalo Venn.png'), stripes.bytes);
    await writeFile(join(folder, 'Other.png'), (await pattern(11)).bytes);
    const options = { provider: 'local', folder, results: 1, thumbnails: true } as const;
    const first = await tools({ imageSearch: options });
    const [named] = await first.toolbox.imageSearch!.search(stripes);
    expect([named?.title, named?.thumbnail?.sha256]).toEqual(['Kalo Venn', stripes.sha256]);
    await writeFile(
      join(folder, 'titles.jsonl'),
      '{"image": "Kalo Venn.png", "title": "Kalo"}\n{"image": "Other.png", "title": "Other"}\n',
    );
    const second = await tools({ imageSearch: options });
    expect((await second.toolbox.imageSearch!.search(stripes))[0]?.title).toBe('Kalo');
  });

  it('must hold pictures', async () => {
    const folder = await temporaryFolder();
    await expect(tools({ imageSearch: { provider: 'local', folder, results: 1, thumbnails: false } })).rejects.toThrow(
      'no pictures to search',
    );
  });
});

async function pattern(period: number): Promise<Image> {
  const side = 48;
  const data = Buffer.alloc(side * side * 3);
  for (let i = 0; i < side * side; i++) data.fill((i * 7) % period === 0 ? 250 : (i * period) % 90, i * 3, i * 3 + 3);
  const bytes = await sharp(data, { raw: { width: side, height: side, channels: 3 } })
    .png()
    .toBuffer();
  return loadImage(bytes);
}
