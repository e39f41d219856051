import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { fixtures } from '../../scripts/fixtures/index.js';
import { picture } from '../../scripts/fixtures/pictures.js';
import { put, writeJson } from '../../scripts/fixtures/write.js';
import { type PrepareJob, prepareInProcess } from '../../src/cli/prepare-process.js';
import { hubOptionsFromEnvironment } from '../../src/data/hub/options.js';
import type { DataState } from '../../src/data/verify.js';
import { type LoopbackHub, startHub } from '../data/hub/server.js';
import { temporaryFolder } from '../data/support.js';
import { ssr } from './run.js';

let root: string;
let data: string;
let hub: LoopbackHub | undefined;

beforeAll(async () => {
  root = await temporaryFolder();
  data = join(root, 'data');
  for (const name of ['mmsearch', 'fvqa-test', 'livevqa']) await fixtures[name]?.write(join(root, 'sources', name));
});

afterEach(async () => {
  vi.unstubAllEnvs();
  await hub?.close();
  hub = undefined;
});

const source = (name: string) => join(root, 'sources', name);

describe('ssr data prepare', () => {
  it('refuses another number of questions in one line, leaves nothing, and takes it when told', async () => {
    const args = ['data', 'prepare', 'mmsearch', '--from', source('mmsearch'), '--data', data];
    const refused = await ssr(...args);
    expect(refused).toMatchObject({ exitCode: 4, stdout: '' });
    expect(refused.stderr).toMatch(/^ssr: mmsearch: the number of rows is not the published one; expected 300, found 5\..*\n$/);
    expect(await readdir(data)).toEqual([]);
    const accepted = await ssr(...args, '--allow-count-mismatch');
    expect(accepted).toMatchObject({ exitCode: 0, stderr: '' });
    expect(accepted.stdout).toMatch(
      /^mmsearch: 3 questions from 5 rows · 3 pictures, .* · NOT THE PUBLISHED 171 · no flags · .* MB of memory/,
    );
    expect(await readdir(data)).toEqual(['mmsearch']);
  });

  it('tries every set that is named, prints flags, and names those that failed', async () => {
    const names = ['fvqa-test', 'infoseek'];
    const outcome = await ssr(
      'data',
      'prepare',
      ...names,
      '--from',
      join(root, 'sources'),
      '--data',
      data,
      '--allow-count-mismatch',
    );
    expect(outcome.exitCode).toBe(4);
    expect(outcome.stdout).toMatch(/^fvqa-test: 4 questions .*flags: aliases-unreadable 1, image-undecodable 1/);
    expect(outcome.stderr.trimEnd().split('\n')).toEqual([
      expect.stringMatching(/^ssr: .*infoseek: no such folder/),
      'ssr: 1 of 2 data sets failed, found infoseek',
    ]);
  });

  it('knows its names', async () => {
    expect(await ssr('data', 'prepare', 'mmserch')).toMatchObject({
      exitCode: 1,
      stderr: expect.stringMatching(/^ssr: no such data set; expected one of: mmsearch, .*visualprobe, found mmserch\n$/),
    });
  });

  it('says that a folder cannot be written', async () => {
    await writeFile(join(root, 'file'), '');
    const outcome = await ssr('data', 'prepare', 'mmsearch', '--from', source('mmsearch'), '--data', join(root, 'file'));
    expect(outcome.exitCode).toBe(4);
    expect(outcome.stderr).toMatch(/^ssr: .*\/file: the folder cannot be made, found EEXIST\n$/);
    for (const folder of ['/proc/ssr-data', '/dev/null/data']) {
      const refused = await ssr('data', 'prepare', 'mmsearch', '--from', source('mmsearch'), '--data', folder);
      expect(refused).toMatchObject({ exitCode: 4, stderr: expect.stringMatching(/^ssr: \/.*: the folder cannot be made.*\n$/) });
    }
  });

  it('downloads from the endpoint of the environment with its token, and says what to do when it is refused', async () => {
    const bytes = await readFile(join(source('mmsearch'), 'end2end.parquet'));
    hub = await startHub({ 'end2end.parquet': bytes }, 'CaraJ7/MMSearch');
    vi.stubEnv('HF_ENDPOINT', `${hub.endpoint}/`);
    vi.stubEnv('HF_HOME', join(root, 'hf'));
    vi.stubEnv('HF_TOKEN', 'hf_secret');
    const args = ['data', 'prepare', 'mmsearch', '--data', join(root, 'downloaded'), '--allow-count-mismatch'];
    hub.faults.push({ status: 403 });
    const refused = await ssr(...args);
    expect(refused).toMatchObject({ exitCode: 4, stdout: '' });
    expect(refused.stderr).toMatch(/access is refused.*status 403.*Accept the terms at .*\/datasets\/CaraJ7\/MMSearch/);
    expect(refused.stderr.trimEnd().split('\n').length).toBe(1);
    hub.faults.push({ dropAt: 0.6 });
    expect((await ssr(...args)).stdout).toMatch(/^mmsearch: 3 questions/);
    // Of the hub and of the host that it redirects to.
    const ranges = new Set(hub.received.flatMap(({ headers }) => headers.range ?? []));
    expect([...ranges]).toEqual([`bytes=${Math.floor(bytes.length * 0.6)}-`]);
    const tokens = hub.received.filter(({ headers }) => headers.authorization !== undefined);
    expect(tokens.length).toBeGreaterThan(0);
    expect(tokens.every(({ path }) => !path.startsWith('/objects/'))).toBe(true);
    const listed = await ssr('data', 'list', '--data', join(root, 'downloaded'), '--json');
    const state = (JSON.parse(listed.stdout) as DataState[]).find(({ name }) => name === 'mmsearch');
    expect(state).toMatchObject({ state: 'wrong-count', questions: 3, expectedQuestions: 171, source: 'CaraJ7/MMSearch' });
    expect(state?.revision).toMatch(/^[0-9a-f]{40}$/);
  });

  it('leaves nothing half-written when it is interrupted, and the next call is whole', async () => {
    const many = join(root, 'many');
    const records = Array.from({ length: 3000 }, (_, i) => ({
      images: ['VisualProbe_train/data/one.jpg'],
      doc_id: `many_${i}`,
      problem: 'What is it?',
      solution: 'a thing',
      data_source: 'many',
    }));
    await writeJson(join(many, 'train.json'), records);
    await put(join(many, 'data/one.jpg'), await picture(1, 'jpeg', 256));
    const folder = join(root, 'interrupted', 'visualprobe');
    const job: PrepareJob = {
      name: 'visualprobe',
      from: many,
      folder,
      allowCountMismatch: false,
      hub: await hubOptionsFromEnvironment({}, root),
    };
    const abort = new AbortController();
    const onReport = (report: { kind: string }): void => {
      if (report.kind === 'event') abort.abort();
    };
    await expect(prepareInProcess(job, { signal: abort.signal, onReport })).rejects.toThrow(/abort/i);
    expect(await readdir(join(root, 'interrupted'))).toEqual([]);
    const { manifest, peakMemoryBytes } = await prepareInProcess(job, {
      signal: new AbortController().signal,
      onReport: () => undefined,
    });
    expect(manifest.questions).toBe(3000);
    expect(peakMemoryBytes).toBeGreaterThan(2 ** 24);
    expect(await readdir(join(root, 'interrupted'))).toEqual(['visualprobe']);
  }, 120_000);
});

describe('ssr data list, verify, export and image-search', () => {
  it('lists every set with its licence and source', async () => {
    const { stdout } = await ssr('data', 'list', '--data', data);
    for (const name of Object.keys(fixtures)) expect(stdout).toContain(name);
    expect(stdout).toMatch(/mmsearch .*wrong-count .*3 of 171/);
    expect(stdout).toMatch(/simplevqa .*absent .*– of 1013 .*Apache-2\.0.*m-a-p\/SimpleVQA.*main/);
  });

  it('verifies what is prepared and finds a changed picture', async () => {
    expect(await ssr('data', 'verify', '--data', data)).toMatchObject({
      exitCode: 0,
      stdout: expect.stringMatching(/mmsearch: 3 questions, 3 pictures, whole/),
    });
    const images = join(data, 'mmsearch/images');
    const [first = ''] = await readdir(images);
    const bytes = await readFile(join(images, first));
    await writeFile(join(images, first), 'damaged');
    const damaged = await ssr('data', 'verify', 'mmsearch', '--data', data);
    expect(damaged.exitCode).toBe(4);
    expect(damaged.stdout).toMatch(new RegExp(`DAMAGED\n  images/${first}: the content is not what the name says`));
    await writeFile(join(images, first), bytes);
    expect(await ssr('data', 'verify', '--data', join(root, 'nowhere'))).toMatchObject({ exitCode: 1 });
    expect(await ssr('data', 'verify', 'simplevqa', '--data', data)).toMatchObject({
      exitCode: 4,
      stderr: expect.stringMatching(/not a prepared data set.*ssr data prepare simplevqa/),
    });
  });

  it('exports to MARS, where the questions are found again', async () => {
    const output = join(root, 'mars');
    const exported = await ssr('data', 'export', 'mmsearch', '--format', 'mars', '--output', output, '--data', data);
    expect(exported).toMatchObject({
      exitCode: 0,
      stdout: expect.stringMatching(/^3 questions written; .*test_all\.json#mmsearch/),
    });
    const again = await ssr(
      'data',
      'export',
      `${output}/test_all.json#mmsearch`,
      '--format',
      'mars',
      '--output',
      join(root, 'mars-2'),
    );
    expect(again.stdout).toMatch(/^3 questions written/);
    expect(await readFile(join(root, 'mars-2/mmsearch/data.jsonl'), 'utf8')).toBe(
      await readFile(join(output, 'mmsearch/data.jsonl'), 'utf8'),
    );
  });

  it('adds a cache of image searches, and leaves the set alone when the cache is no good', async () => {
    const golden = new URL('../golden/data/', import.meta.url).pathname;
    const args = ['data', 'image-search', 'fvqa-test', '--data', data, '--from'];
    const hostile = await ssr(...args, join(golden, 'hostile.pkl'));
    expect(hostile).toMatchObject({ exitCode: 4, stderr: expect.stringMatching(/class that is not allowed/) });
    expect((await readdir(join(data, 'fvqa-test'))).sort()).toEqual(['images', 'index.jsonl', 'manifest.json']);
    const added = await ssr(...args, join(golden, 'image_search_cache_p4.pkl'));
    expect(added.stdout).toMatch(/^fvqa-test: searches for 2 of 4 questions, .*not in the cache: fvqa_test_1, fvqa_test_3/);
    expect((await ssr('data', 'verify', 'fvqa-test', '--data', data)).exitCode).toBe(0);
    await mkdir(join(root, 'empty'), { recursive: true });
    expect(await ssr(...args, join(root, 'empty/x.txt'))).toMatchObject({ exitCode: 1 });
  });
});
