import { access, copyFile, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { dataSource, dataSources } from '../../benchmarks/registry.js';
import { picture } from '../../scripts/fixtures/pictures.js';
import { livevqaFixture, matSearchFixture } from '../../scripts/fixtures/records.js';
import { sha256Of } from '../../src/data/hub/digest.js';
import { openPrepared } from '../../src/data/loader.js';
import { openTable } from '../../src/data/parquet.js';
import { prepare } from '../../src/data/prepare.js';
import { folderFiles } from '../../src/data/source-files.js';
import { verifyPrepared } from '../../src/data/verify.js';
import { fixtureSource, type Prepared, prepareFixture, readQuestions, temporaryFolder } from './support.js';

const mini = new URL('../golden/data/mini_data.pq', import.meta.url).pathname;

let root: string;
const prepared = new Map<string, Prepared>();

beforeAll(async () => {
  root = await temporaryFolder();
  for (const { name } of dataSources) prepared.set(name, await prepareFixture(name, root));
});

function of(name: string): Prepared {
  const found = prepared.get(name);
  if (found === undefined) throw new Error(name);
  return found;
}

describe('preparing each data set from a source in its own schema', () => {
  it.each(dataSources.map(({ name }) => name))('%s becomes a whole folder that loads', async (name) => {
    const { folder, manifest, questions } = of(name);
    expect(await verifyPrepared(folder)).toMatchObject({ faults: [], questions: questions.length });
    const benchmark = await openPrepared(folder);
    expect(benchmark.entries.map(({ id }) => id)).toEqual(questions.map(({ id }) => id));
    expect(benchmark.sha256).toBe(manifest.sha256['index.jsonl']);
    for (const { id, flags, images, answers } of questions) {
      const load = benchmark.load(id);
      if (flags?.some((flag) => flag === 'image-missing' || flag === 'image-undecodable'))
        await expect(load).rejects.toThrow(/cannot be asked/);
      else
        expect(await load).toMatchObject({
          id,
          answers,
          images: images.map(() => expect.objectContaining({ width: expect.any(Number) })),
        });
    }
    expect(Object.values(manifest.types).reduce((a, b) => a + b)).toBe(questions.length);
  });

  it('keeps only MMSearch questions with a picture, with their aliases', () => {
    const { questions, manifest } = of('mmsearch');
    expect(questions.map(({ id, type }) => [id, type])).toEqual([
      ['news_1', 'news'],
      ['knowledge_3', 'knowledge'],
      ['news_5', 'news'],
    ]);
    expect(questions[1]?.answers).toEqual(['2024-09-03', 'September 3', 'Sept. 3']);
    expect(questions[1]?.meta).toEqual({
      subfield: 'technology',
      timestamp: '2024-09-29',
      gt_requery: 'conference 3 exact date',
    });
    expect(questions[1]?.source).toEqual({ file: 'end2end.parquet', row: 2 });
    expect(manifest.source).toMatchObject({ repository: 'CaraJ7/MMSearch', revision: null, rows: 5 });
    expect(manifest.images?.files).toBe(3);
  });

  it('reads HR-MMSearch over all shards and row groups', () => {
    expect(of('hr-mmsearch').questions.map(({ id, source }) => [id, source?.row])).toEqual([
      ['hr_1', 0],
      ['hr_2', 1],
      ['hr_3', 2],
      ['hr_4', 3],
    ]);
  });

  it('reads FVQA aliases from JSON in a string, and flags what it cannot read', () => {
    const { questions, manifest } = of('fvqa-test');
    expect(questions.map(({ answers }) => answers)).toEqual([
      ['Cheshire', 'County of Chester'],
      ['Spain', 'Kingdom of Spain', '🇪🇸'],
      ['namus'],
      ['oak'],
    ]);
    expect(questions[0]?.question).toBe('What is thing 0?');
    expect(manifest.flags).toEqual({ 'aliases-unreadable': 1, 'image-undecodable': 1 });
  });

  it('takes the type of FVQA-train from its category', () => {
    expect(of('fvqa-train').manifest.types).toEqual({ search_free: 2, search_required: 1 });
  });

  it('keeps 64-bit ids whole, converts AVIF and flags damaged pictures in SimpleVQA', () => {
    const { questions, manifest } = of('simplevqa');
    expect(questions.map(({ id, flags }) => [id, flags])).toEqual([
      ['1', undefined],
      ['2', ['image-converted']],
      ['9007199254740993', ['image-undecodable']],
      ['5', ['image-undecodable']],
    ]);
    expect(questions[1]?.images[0]).toMatch(/\.png$/);
    expect(manifest.source?.files.map(({ path }) => path)).toEqual(['data/test-00000-of-00001.parquet']);
  });

  it('finds LiveVQA pictures behind foreign paths and tells repeated questions apart', () => {
    const { questions, manifest } = of('livevqa');
    expect(questions.map(({ type }) => type)).toEqual(['Movies', 'Movies', 'Sport', 'Sports', 'Health']);
    expect(questions[0]?.images).toEqual(questions[1]?.images);
    expect(manifest.flags).toEqual({ 'image-missing': 1, 'no-gold': 1 });
    expect(manifest.images?.files).toBe(3);
  });

  it('knows simple and hard MAT questions by position, and the row whose columns are shifted', () => {
    const { questions, manifest } = of('mat-search');
    expect(manifest.types).toEqual({ simple: 75, hard: 75 });
    expect(questions[100]).toMatchObject({
      id: '100',
      question: 'Peter Benjamin Parker',
      answers: [],
      flags: ['columns-shifted', 'no-gold'],
    });
    expect(questions[3]?.answers).toEqual(['Unicorn', 'A unicorn']);
    expect(questions[4]?.answers).toEqual(['Thing 4']);
  });

  it('gives InfoSeek rows without ids one by position, and keeps ranges apart from answers', async () => {
    const { questions } = of('infoseek');
    expect(questions.map(({ id }) => id)).toEqual(['infoseek-0', 'infoseek-1', 'infoseek-2']);
    expect(questions[0]).toMatchObject({ answers: ['5.0'], meta: { other_answers: [{ wikidata: 5, range: [4.5, 5.5] }] } });
    expect(questions[2]).toMatchObject({ answers: [], flags: ['no-gold'] });
    const benchmark = await openPrepared(of('infoseek').folder);
    expect((await benchmark.load('infoseek-0')).ranges).toEqual([[4.5, 5.5]]);
    expect(await benchmark.load('infoseek-1')).not.toHaveProperty('ranges');
  });

  it('strips picture marks and the repository name from Mini-o3 records', () => {
    expect(of('visualprobe').questions[0]).toMatchObject({
      question: 'What colour is the small flag?',
      type: 'open',
      answers: ['solution 0'],
    });
    expect(of('deepeyes').manifest.types).toEqual({ 'multiple-choice': 1, open: 1 });
  });
});

describe('a published parquet file', () => {
  it('gives its pictures byte for byte', async () => {
    const folder = join(root, 'sources', 'mini');
    await mkdir(folder, { recursive: true });
    await copyFile(mini, join(folder, 'mmsearch_r1_infoseek_sub_2k.parquet'));
    const target = join(root, 'prepared', 'mini');
    await prepare({ ...dataSource('infoseek'), expected: { questions: 5, sourceRows: 5 } }, await folderFiles(folder), {
      folder: target,
    });
    const questions = await readQuestions(target);
    const table = await openTable(mini);
    const rows = await table.readGroup(0, ['images']);
    await table.close();
    const originals = rows.map(({ images }) => (images as { bytes: Uint8Array }[])[0]?.bytes ?? new Uint8Array());
    expect(originals[0]?.length).toBe(56_490);
    expect(questions.map(({ images }) => images)).toEqual(originals.map((bytes) => [`images/${sha256Of(bytes)}.jpg`]));
    for (const [i, bytes] of originals.entries()) {
      expect(Buffer.compare(await readFile(join(target, questions[i]?.images[0] ?? '')), bytes)).toBe(0);
    }
    expect(questions[0]).toMatchObject({
      question: 'What is the country of origin of this food?',
      answers: ['Spain', 'Kingdom of Spain', 'ESP', '🇪🇸', 'ES'],
    });
  });
});

describe('what preparing refuses', () => {
  const files = () => folderFiles(join(root, 'sources', 'mmsearch'));

  it('another number of rows, unless it is allowed', async () => {
    const folder = join(root, 'prepared', 'counted');
    await expect(prepare(dataSource('mmsearch'), await files(), { folder })).rejects.toThrow(
      /number of rows .*expected 300, found 5.*--allow-count-mismatch/,
    );
    await expect(access(folder)).rejects.toThrow();
    const manifest = await prepare(dataSource('mmsearch'), await files(), { folder, allowCountMismatch: true });
    expect(manifest).toMatchObject({ questions: 3, expected: { questions: 171, sourceRows: 300 } });
  });

  it('a file without the columns, saying which it has', async () => {
    const folder = join(root, 'sources', 'wrong');
    await mkdir(folder, { recursive: true });
    await copyFile(join(root, 'sources/fvqa-test/fvqa_test.parquet'), join(folder, 'end2end.parquet'));
    await expect(prepare(fixtureSource('mmsearch'), await folderFiles(folder), { folder: join(root, 'none') })).rejects.toThrow(
      /columns are missing: sample_id, query, .*found prompt: list, images: list, reward_model: struct, data_source: string/,
    );
  });

  it('an LFS pointer, a folder without the file, and a file that is no parquet', async () => {
    const folder = join(root, 'sources', 'pointer');
    await mkdir(folder, { recursive: true });
    const target = { folder: join(root, 'none') };
    await expect(prepare(fixtureSource('fvqa-test'), await folderFiles(folder), target)).rejects.toThrow(
      /data file is missing.*fvqa_test.parquet/,
    );
    await writeFile(
      join(folder, 'fvqa_test.parquet'),
      'version https://git-lfs.github.com/spec/v1\noid sha256:8d5a\nsize 277391783\n',
    );
    await expect(prepare(fixtureSource('fvqa-test'), await folderFiles(folder), target)).rejects.toThrow(
      /Git LFS pointer .*expected the object sha256:8d5a of 277391783 bytes/,
    );
    await writeFile(join(folder, 'fvqa_test.parquet'), 'something else, long enough to have a footer');
    await expect(prepare(fixtureSource('fvqa-test'), await folderFiles(folder), target)).rejects.toThrow(
      /not a readable parquet file/,
    );
  });

  it('a parquet file that is damaged inside, leaving nothing behind', async () => {
    const folder = join(root, 'sources', 'damaged');
    await mkdir(folder, { recursive: true });
    const bytes = await readFile(join(root, 'sources/fvqa-test/fvqa_test.parquet'));
    await writeFile(join(folder, 'fvqa_test.parquet'), Buffer.concat([Buffer.alloc(200, 255), bytes.subarray(200)]));
    const target = join(root, 'prepared', 'damaged');
    await expect(prepare(fixtureSource('fvqa-test'), await folderFiles(folder), { folder: target })).rejects.toThrow(
      /not a readable parquet file/,
    );
    expect((await readdir(join(root, 'prepared'))).filter((name) => name.startsWith('damaged'))).toEqual([]);
  });

  it('paths that leave the folder', async () => {
    const folder = join(root, 'sources', 'escape');
    await matSearchFixture(folder);
    const file = join(folder, 'MAT-Benchmark/MAT-Search.json');
    await writeFile(file, (await readFile(file, 'utf8')).replace('picture_0.png', '../../../secret.png'));
    await expect(prepare(fixtureSource('mat-search'), await folderFiles(folder), { folder: join(root, 'none') })).rejects.toThrow(
      /leaves its folder/,
    );
  });
});

describe('preparing again', () => {
  it('replaces the folder whole and leaves nothing behind', async () => {
    const first = of('visualprobe');
    const source = join(root, 'sources', 'visualprobe');
    await writeFile(join(source, 'data/visual_probe_train_0.jpg'), await picture(99));
    const manifest = await prepare(fixtureSource('visualprobe'), await folderFiles(source), { folder: first.folder });
    expect(manifest.sha256).not.toEqual(first.manifest.sha256);
    expect(await verifyPrepared(first.folder)).toMatchObject({ faults: [], images: 3 });
    expect((await readdir(join(root, 'prepared'))).filter((name) => /preparing|replaced|lock/.test(name))).toEqual([]);
  });

  it('gives the same folder from pictures in a zip archive', async () => {
    const source = join(root, 'sources', 'livevqa-zip');
    await livevqaFixture(source, 'zip');
    const folder = join(root, 'prepared', 'livevqa-zip');
    const manifest = await prepare(fixtureSource('livevqa'), await folderFiles(source), { folder });
    expect(manifest.sha256).toEqual(of('livevqa').manifest.sha256);
  });
});

describe('verifying', () => {
  it('names every fault', async () => {
    const { folder, questions } = of('hr-mmsearch');
    const [first, second] = questions;
    const image = join(folder, first?.images[0] ?? '');
    await writeFile(image, Buffer.concat([await readFile(image), Buffer.from('x')]));
    await writeFile(join(folder, 'images', `${'0'.repeat(64)}.jpg`), 'x');
    const index = join(folder, 'index.jsonl');
    await writeFile(index, (await readFile(index, 'utf8')).replace(second?.question ?? '', 'What?'));
    const { faults } = await verifyPrepared(folder);
    expect([...faults].sort()).toEqual([
      `images/${'0'.repeat(64)}.jpg: no question refers to it`,
      `${first?.images[0]}: the content is not what the name says`,
      'index.jsonl: not the file that was written',
    ]);
    await expect(openPrepared(folder)).rejects.toThrow(/not the one that was prepared.*ssr data prepare hr-mmsearch/);
  });
});
