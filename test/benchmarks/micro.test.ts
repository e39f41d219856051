import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import sharp from 'sharp';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { loadMicro, microToolbox, publishedSplits } from '../../benchmarks/micro/index.js';
import { DataError, UsageError } from '../../src/errors.js';

const root = await mkdtemp(join(tmpdir(), 'ssr-micro-'));
const split = join(root, 'dev');
let red: string;
let blue: string;

beforeEach(async () => {
  await rm(split, { recursive: true, force: true });
  await mkdir(join(split, 'images'), { recursive: true });
  [red, blue] = [await savePicture('#cc0000'), await savePicture('#0000cc')];
  await writeSplit([question('micro-dev-0001', red), question('micro-dev-0002', blue)]);
});
afterAll(() => rm(root, { recursive: true, force: true }));

describe('the micro benchmark', () => {
  it('lists its questions in order and loads one with its picture', async () => {
    const benchmark = await loadMicro('dev', root);
    expect(benchmark).toMatchObject({ name: 'micro', split: 'dev', sha256: expect.stringMatching(/^[0-9a-f]{64}$/) });
    expect(benchmark.entries).toEqual([
      { id: 'micro-dev-0001', type: 'colour' },
      { id: 'micro-dev-0002', type: 'colour' },
    ]);
    const loaded = await benchmark.load('micro-dev-0002');
    expect(loaded).toMatchObject({ text: 'Which colour?', answers: ['blue'], expected: ['r_ANSWER_FROM_IMAGE'] });
    expect(loaded.images).toHaveLength(1);
    expect(loaded.images[0]).toMatchObject({ width: 40, height: 30, mediaType: 'image/png', sha256: nameHash(blue) });
  });

  it('has another hash when a corpus differs', async () => {
    const before = (await loadMicro('dev', root)).sha256;
    expect((await loadMicro('dev', root)).sha256).toBe(before);
    await writeSplit([question('micro-dev-0001', red), question('micro-dev-0002', blue)], [{ id: 'p', text: 'Other.' }]);
    expect((await loadMicro('dev', root)).sha256).not.toBe(before);
  });

  it('brings tools that search its corpora', async () => {
    const tools = await microToolbox('dev', { textResults: 1, imageResults: 1 }, root);
    const { images } = await (await loadMicro('dev', root)).load('micro-dev-0001');
    const [image] = images;
    if (!image) throw new Error('no picture');
    expect(await tools.textSearch.search('city of Kalo Venn')).toEqual([{ text: 'Kalo Venn city: Oslo.' }]);
    expect(await tools.imageSearch.search(image)).toEqual([{ title: 'Red Thing' }]);
    expect(await tools.crop.crop(image, [0, 0, 500, 500])).toMatchObject({ width: 37, height: 28 });
  });

  it('refuses an unknown split and lists the known ones', async () => {
    await expect(loadMicro('test', root)).rejects.toThrow(UsageError);
    await expect(microToolbox('../dev', { textResults: 1, imageResults: 1 }, root)).rejects.toThrow('one of: plain, hard, dev');
  });

  it('names the line and field of a malformed question', async () => {
    await writeSplit([question('micro-dev-0001', red), { ...question('micro-dev-0002', blue), answers: 'blue' }]);
    await expect(loadMicro('dev', root)).rejects.toThrow(/dev\/index\.jsonl:2: field answers: /);
  });

  it('refuses pictures outside its folder', async () => {
    await writeSplit([question('micro-dev-0001', '../../secret.png')]);
    await expect(loadMicro('dev', root)).rejects.toThrow(/index\.jsonl:1: field images\.0: expected images\/<sha256>\.png/);
  });

  it('refuses repeated ids', async () => {
    await writeSplit([question('micro-dev-0001', red), question('micro-dev-0001', blue)]);
    await expect(loadMicro('dev', root)).rejects.toThrow('expected 2 questions with different ids, found 2 with 1 ids');
  });

  it.each(['index.jsonl', 'passages.jsonl', 'pictures.jsonl'])('refuses an edited %s', async (name) => {
    const path = join(split, name);
    await writeFile(path, `${await readFile(path, 'utf8')}\n`);
    await expect(loadMicro('dev', root)).rejects.toThrow(DataError);
    await expect(loadMicro('dev', root)).rejects.toThrow(`${path}: not the file that was published; expected SHA-256 `);
  });

  it('says how to get missing data back', async () => {
    await rm(join(split, 'manifest.json'));
    await expect(loadMicro('dev', root)).rejects.toThrow(
      `${join(split, 'manifest.json')}: cannot be read, found ENOENT. Restore the data`,
    );
  });

  it('refuses the manifest of another split', async () => {
    const path = join(split, 'manifest.json');
    await writeFile(path, (await readFile(path, 'utf8')).replace('"dev"', '"hard"'));
    await expect(loadMicro('dev', root)).rejects.toThrow('the manifest is of another split; expected dev, found hard');
  });

  it('refuses a picture whose bytes are not those of its name', async () => {
    await writeFile(join(split, blue), await readFile(join(split, red)));
    const benchmark = await loadMicro('dev', root);
    await expect(benchmark.load('micro-dev-0001')).resolves.toBeDefined();
    await expect(benchmark.load('micro-dev-0002')).rejects.toThrow(`${join(split, blue)}: not the file that was published`);
    await expect(benchmark.load('micro-dev-0003')).rejects.toThrow('no such question, found micro-dev-0003');
  });
});

describe('the published splits', () => {
  it.each(publishedSplits)('%s is whole: hashes, expected candidates, and pictures that are found again', async (name) => {
    const benchmark = await loadMicro(name);
    const tools = await microToolbox(name, { textResults: 2, imageResults: 1 });
    expect(new Set(benchmark.entries.map(({ id }) => id)).size).toBe(benchmark.entries.length);
    for (const { id, type } of benchmark.entries.filter(({ type }, i) => type === 'name' || i % 10 === 0)) {
      const { images, answers, expected } = await benchmark.load(id);
      expect(images[0]).toMatchObject({ width: 384, height: 384 });
      if (type !== 'name') continue;
      expect(expected).toEqual(['r_IDENTIFY_BY_IMAGE', 'r_ANSWER_FROM_EVIDENCE']);
      const [found] = await tools.imageSearch.search(images[0] ?? expect.fail('no picture'));
      expect(found?.title).toBe(answers[0]);
    }
  });
});

function question(id: string, image: string): Record<string, unknown> {
  const answers = [image === red ? 'red' : 'blue'];
  return { id, type: 'colour', question: 'Which colour?', images: [image], answers, expected: ['r_ANSWER_FROM_IMAGE'] };
}

async function savePicture(background: string): Promise<string> {
  const bytes = await sharp({ create: { width: 40, height: 30, channels: 3, background } })
    .png()
    .toBuffer();
  const name = `images/${sha256(bytes)}.png`;
  await writeFile(join(split, name), bytes);
  return name;
}

async function writeSplit(
  questions: readonly unknown[],
  passages: readonly unknown[] = [
    { id: 'p1', text: 'Mira Tal city: Rome.' },
    { id: 'p2', text: 'Kalo Venn city: Oslo.' },
  ],
): Promise<void> {
  const pictures = [
    { image: blue, title: 'Blue Thing' },
    { image: red, title: 'Red Thing' },
  ];
  const files = { 'index.jsonl': questions, 'passages.jsonl': passages, 'pictures.jsonl': pictures };
  const hashes: Record<string, string> = {};
  for (const [name, records] of Object.entries(files)) {
    const text = records.map((record) => `${JSON.stringify(record)}\n`).join('');
    hashes[name] = sha256(text);
    await writeFile(join(split, name), text);
  }
  const manifest = { schema: 1, name: 'micro', split: 'dev', seed: 1, questions: questions.length, sha256: hashes };
  await writeFile(join(split, 'manifest.json'), JSON.stringify(manifest));
}

function sha256(content: string | Uint8Array): string {
  return createHash('sha256').update(content).digest('hex');
}

function nameHash(name: string): string {
  return name.slice('images/'.length, -'.png'.length);
}
