import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { benchmarks, dataSource, dataSources } from '../../benchmarks/registry.js';
import { picture, turnedPicture } from '../../scripts/fixtures/pictures.js';
import { put, writeJson, writeJsonLines } from '../../scripts/fixtures/write.js';
import { openPrepared } from '../../src/data/loader.js';
import { exportMars } from '../../src/data/mars-export.js';
import { openBenchmark } from '../../src/data/open.js';
import { dataState } from '../../src/data/verify.js';
import { DataError, UsageError } from '../../src/errors.js';
import { prepareFixture, temporaryFolder } from './support.js';

let root: string;
beforeAll(async () => {
  root = await temporaryFolder();
});
const open = (spec: string) =>
  openBenchmark(
    spec,
    join(root, 'prepared'),
    dataSources.map(({ name }) => name),
  );

describe('SenseNova-MARS data', () => {
  it('read back what was written, with native ids, aliases and pictures', async () => {
    const { folder, questions } = await prepareFixture('mmsearch', root);
    const original = await openPrepared(folder);
    const target = join(root, 'mars');
    expect(await exportMars(original, target)).toEqual({ manifest: join(target, 'test_all.json'), written: 3, leftOut: [] });
    const imported = await open(`${join(target, 'test_all.json')}#mmsearch`);
    expect(imported.entries).toEqual(original.entries);
    for (const { id } of questions) expect(await imported.load(id)).toEqual(await original.load(id));
  });

  it('leave out what they cannot express, and keep other sets of the manifest', async () => {
    const { folder } = await prepareFixture('livevqa', root);
    const target = join(root, 'mars');
    const summary = await exportMars(await openPrepared(folder), target);
    expect(summary).toMatchObject({
      written: 4,
      leftOut: [{ id: 'Sports_1_2', reason: expect.stringContaining('no such file: image/lost.jpg') }],
    });
    const manifest = JSON.parse(await readFile(summary.manifest, 'utf8')) as object;
    expect(Object.keys(manifest)).toContain('livevqa');
  });

  it('in their own layout: roots from the folder of the code, ids by position, marks in the prompt', async () => {
    const data = join(root, 'repository/data/eval/mmsearch_end2end_only_image');
    await put(join(data, 'images/a.jpg'), await picture(7));
    const row = { reward_model: { ground_truth: ['Oslo', 'Christiania'] }, image: ['images/a.jpg'], index: 0 };
    await writeJsonLines(join(data, 'data.jsonl'), [
      { ...row, prompt: [{ role: 'user', content: '<image>Which city?' }] },
      {
        ...row,
        prompt: [
          { role: 'system', content: 's' },
          { role: 'user', content: '<image>\nWhich river?' },
        ],
        image_search_summary: 's',
      },
    ]);
    const set = {
      root: './data/eval/mmsearch_end2end_only_image',
      annotation: './data/eval/mmsearch_end2end_only_image/data.jsonl',
      length: 2,
      repeat_time: 1,
    };
    const file = join(root, 'repository/evaluation/test_all.json');
    await writeJson(file, {
      mmsearch_end2end_only_image: set,
      short: { ...set, length: 3 },
      lost: { ...set, root: './nowhere' },
    });
    const benchmark = await open(`${file}#mmsearch_end2end_only_image`);
    expect(await benchmark.load('mmsearch_end2end_only_image-1')).toMatchObject({
      text: 'Which river?',
      answers: ['Oslo', 'Christiania'],
      images: [{ width: 64 }],
    });
    await expect(open(`${file}#short`)).rejects.toThrow(/expected 3, found 2/);
    await expect(open(`${file}#lost`)).rejects.toThrow(/leads nowhere.*nowhere/);
    await expect(open(`${file}#none`)).rejects.toThrow(UsageError);
  });
});

describe("anybody's own questions", () => {
  it('are a JSONL file with pictures beside it', async () => {
    const file = join(root, 'own', 'questions.jsonl');
    await put(join(root, 'own/pictures/turned.jpg'), await turnedPicture(1));
    await writeJsonLines(file, [
      { id: 1, question: 'What is this?', images: ['pictures/turned.jpg'], answers: ['a square'] },
      { id: 'b', question: 'And this?', type: 'text-only' },
    ]);
    const benchmark = await open(file);
    expect(benchmark).toMatchObject({
      name: 'questions',
      entries: [
        { id: '1', type: 'question' },
        { id: 'b', type: 'text-only' },
      ],
    });
    // The picture is 64 x 32 and turned by a quarter.
    expect(await benchmark.load('1')).toMatchObject({
      answers: ['a square'],
      images: [{ width: 32, height: 64, mediaType: 'image/png' }],
    });
    expect(await benchmark.load('b')).toMatchObject({ answers: [], images: [] });
  });

  it.each([
    ['{"id": "a", "question": "q", "answer": "x"}', /questions-bad\.jsonl:2: .*answer/],
    ['{"id": "a", "question": ""}', /:2: field question/],
    ['{"id": "ok", "question": "q"}', /:2: an id is used twice, found ok/],
    ['{"id": "a", "quest', /:2: not JSON/],
  ])('are refused with the line of the mistake: %s', async (line, message) => {
    const file = join(root, 'questions-bad.jsonl');
    await writeFile(file, `{"id": "ok", "question": "q"}\n${line}\n`);
    await expect(open(file)).rejects.toThrow(message);
  });

  it('name the picture that is missing when it is needed', async () => {
    const file = join(root, 'lost.jsonl');
    await writeJsonLines(file, [{ id: 'a', question: 'q', images: ['none.jpg'] }]);
    await expect((await open(file)).load('a')).rejects.toThrow(/none\.jpg: the picture cannot be read, found ENOENT/);
    await writeFile(file, '\n');
    await expect(open(file)).rejects.toThrow(/no question/);
  });

  it('keep every character across the blocks in which a file is read', async () => {
    const file = join(root, 'long.jsonl');
    await writeJsonLines(
      file,
      Array.from({ length: 3000 }, (_, i) => ({ id: `${i}`, question: `${'ñ漢😀'.repeat(1 + (i % 40))} ${i}` })),
    );
    const benchmark = await open(file);
    expect(benchmark.entries.length).toBe(3000);
    for (const i of [0, 39, 1777, 2999]) expect((await benchmark.load(`${i}`)).text).toBe(`${'ñ漢😀'.repeat(1 + (i % 40))} ${i}`);
  });
});

describe('names', () => {
  it('lead to prepared folders, with a way on where there is none', async () => {
    await prepareFixture('infoseek', root);
    expect((await open('infoseek')).name).toBe('infoseek');
    expect((await open(join(root, 'prepared', 'infoseek'))).name).toBe('infoseek');
    await expect(open('simplevqa')).rejects.toThrow(/not a prepared data set.*Run: ssr data prepare simplevqa/);
    await expect(open('mmsearch-plus')).rejects.toThrow(/no such benchmark.*mmsearch, hr-mmsearch/);
    expect(() => dataSource('sample')).toThrow(/one of: mmsearch, /);
  });

  it('have a state', async () => {
    const state = (name: string) => dataState(dataSource(name), join(root, 'prepared'));
    expect(await state('infoseek')).toMatchObject({
      state: 'wrong-count',
      questions: 3,
      expectedQuestions: 2000,
      flags: { 'no-gold': 1 },
    });
    expect(await state('hr-mmsearch')).toMatchObject({ state: 'absent', questions: null, revision: 'main' });
    await put(join(root, 'prepared/hr-mmsearch/manifest.json'), '{"schema": 2}');
    expect(await state('hr-mmsearch')).toMatchObject({ state: 'unreadable' });
    await expect(openPrepared(join(root, 'prepared/hr-mmsearch'))).rejects.toThrow(DataError);
  });

  it('stand for the published numbers of questions, of which the published rates are whole shares', () => {
    expect(benchmarks.map(({ expected }) => expected.questions)).toEqual([171, 305, 1800, 1013, 3602, 150, 2000]);
    const published = ['61.40', '30.16', '70.22', '71.08', '57.19', '78.67', '60.90'];
    for (const [i, rate] of published.entries()) {
      const n = benchmarks[i]?.expected.questions ?? 0;
      expect(((100 * Math.round((Number(rate) * n) / 100)) / n).toFixed(2)).toBe(rate);
    }
  });
});
