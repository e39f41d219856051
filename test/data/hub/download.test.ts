import { readdir, readFile, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { downloadFile } from '../../../src/data/hub/download.js';
import type { DownloadProgress, HubOptions } from '../../../src/data/hub/options.js';
import { resolveCommit } from '../../../src/data/hub/remote.js';
import type { Repository } from '../../../src/data/hub/repository.js';
import { repositoryFiles } from '../../../src/data/source-files.js';
import { DataError } from '../../../src/errors.js';
import { temporaryFolder } from '../support.js';
import { commit, gitHash, type LoopbackHub, sha256, startHub } from './server.js';

const id = 'owner/set';
const repository: Repository = { host: 'huggingface', id, revision: 'main' };
const large = Uint8Array.from({ length: 200_000 }, (_, i) => (i * 31 + (i >> 8)) % 251);
const small = new TextEncoder().encode('{"a": 1}\n');

let hub: LoopbackHub;
let options: HubOptions;
let cache: string;

beforeEach(async () => {
  hub = await startHub({ 'data/large file.bin': large, 'small.json': small, 'data/other.bin': large.subarray(5) }, id, 2);
  cache = await temporaryFolder();
  options = {
    endpoint: hub.endpoint,
    githubMedia: `${hub.endpoint}/media`,
    cacheFolder: cache,
    githubCacheFolder: join(cache, 'github'),
    token: 'hf_secret',
    stallMs: 300,
    attempts: 3,
    retryDelayMs: 5,
    retryDelayLimitMs: 50,
  };
});
afterEach(() => hub.close());

const get = (path = 'data/large file.bin') => downloadFile(repository, commit, { path }, options);
const contentGets = () => hub.received.filter(({ method, path }) => method === 'GET' && path.startsWith('/objects/'));
const folder = () => join(cache, 'datasets--owner--set');

describe('downloading', () => {
  it('puts the file where the Python client looks for it', async () => {
    const path = await get();
    expect(path).toBe(join(folder(), 'snapshots', commit, 'data', 'large file.bin'));
    expect(sha256(await readFile(path ?? ''))).toBe(sha256(large));
    expect(await readlink(path ?? '')).toBe(`../../../blobs/${sha256(large)}`);
    expect(await readdir(join(folder(), 'blobs'))).toEqual([sha256(large)]);
    expect(await readdir(join(cache, '.locks', 'datasets--owner--set'))).toEqual([]);
  });

  it('checks small files against the hash of Git', async () => {
    await get('small.json');
    expect(await readdir(join(folder(), 'blobs'))).toEqual([gitHash(small)]);
  });

  it('asks nothing for what is there', async () => {
    await get();
    const asked = hub.received.length;
    await get();
    expect(hub.received.length).toBe(asked);
  });

  it('keeps the commit that a branch had at the first download', async () => {
    expect(await resolveCommit(repository, options)).toBe(commit);
    expect(await readFile(join(folder(), 'refs/main'), 'utf8')).toBe(commit);
    await hub.close();
    expect(await resolveCommit(repository, options)).toBe(commit);
  });

  it('lists files over all pages without leaving the mirror, once', async () => {
    const files = await repositoryFiles(repository, {}, options);
    expect(await files.list()).toEqual(['data/large file.bin', 'small.json', 'data/other.bin']);
    expect(await files.locate('data/none.bin')).toBeNull();
    expect(sha256((await files.read('data/other.bin')) ?? new Uint8Array())).toBe(sha256(large.subarray(5)));
    expect(hub.received.some(({ method }) => method === 'HEAD')).toBe(false);
    const again = await repositoryFiles(repository, {}, options);
    await again.list();
    expect(hub.received.filter(({ path }) => path.includes('/tree/')).length).toBe(2);
  });

  it('gives null for a file that the repository does not have', async () => {
    expect(await get('none.bin')).toBeNull();
  });

  it('sends the token to the hub alone', async () => {
    await get();
    const [head] = hub.received;
    expect(head?.headers.authorization).toBe('Bearer hf_secret');
    expect(contentGets().length).toBe(1);
    expect(contentGets()[0]?.headers.authorization).toBeUndefined();
  });

  it('reports bytes and rate', async () => {
    const seen: DownloadProgress[] = [];
    options = { ...options, onProgress: (progress) => seen.push(progress) };
    await get();
    expect(seen.at(-1)).toMatchObject({ receivedBytes: large.length, totalBytes: large.length, secondsLeft: 0 });
    expect(seen.at(-1)?.bytesPerSecond).toBeGreaterThan(0);
  });

  it('downloads once when two ask at the same time', async () => {
    const [a, b] = await Promise.all([get(), get()]);
    expect(a).toBe(b);
    expect(contentGets().length).toBe(1);
  });
});

describe('faults', () => {
  it('goes on at 60% after a dropped connection', async () => {
    hub.faults.push({ dropAt: 0.6 });
    expect(sha256(await readFile((await get()) ?? ''))).toBe(sha256(large));
    const [, second] = contentGets();
    expect(Number(/bytes=(\d+)-/.exec(second?.headers.range ?? '')?.[1])).toBeGreaterThan(0);
    expect(second?.headers['if-range']).toBe('"content-etag"');
  });

  it('gives up when nothing arrives any more, and a second call goes on from there', async () => {
    hub.faults.push({ dropAt: 0.6 }, ...Array.from({ length: 6 }, () => ({ status: 503 })));
    const failure = await get().catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(DataError);
    expect(String(failure)).toMatch(/interrupted.*found \d+ of 200000 bytes.*status 503.*Run the command again/);
    hub.faults.length = 0;
    hub.received.length = 0;
    expect(sha256(await readFile((await get()) ?? ''))).toBe(sha256(large));
    expect(contentGets()[0]?.headers.range).toMatch(/^bytes=[1-9]\d*-$/);
  });

  it('gives up a stalled connection and goes on', async () => {
    hub.faults.push({ stallAt: 0.3 });
    expect(sha256(await readFile((await get()) ?? ''))).toBe(sha256(large));
    expect(contentGets().length).toBe(2);
  });

  it('starts over after 416', async () => {
    hub.faults.push({ dropAt: 0.6 }, { status: 416 });
    expect(sha256(await readFile((await get()) ?? ''))).toBe(sha256(large));
    expect(contentGets().map(({ headers }) => headers.range !== undefined)).toEqual([false, true, false]);
  });

  it('takes the whole file again when it has changed on the server', async () => {
    hub.faults.push({ dropAt: 0.6, instead: large.map((byte) => byte ^ 1), headers: { etag: '"older"' } });
    expect(sha256(await readFile((await get()) ?? ''))).toBe(sha256(large));
    // The server saw that its If-Range no longer holds.
    expect(contentGets().map(({ headers }) => headers['if-range'])).toEqual([undefined, '"older"']);
  });

  it('takes the whole file again when the pieces do not make the right one', async () => {
    hub.faults.push({ dropAt: 0.6, instead: large.map((byte) => byte ^ 1) });
    expect(sha256(await readFile((await get()) ?? ''))).toBe(sha256(large));
    expect(contentGets().map(({ headers }) => headers.range !== undefined)).toEqual([false, true, false]);
    expect(await readdir(join(folder(), 'blobs'))).toEqual([sha256(large)]);
  });

  it('throws away a file with the wrong checksum', async () => {
    hub.faults.push({ instead: large.map((byte) => byte ^ 1) });
    await expect(get()).rejects.toThrow(new RegExp(`wrong checksum; expected ${sha256(large)}, found [0-9a-f]{64}`));
    expect(await readdir(join(folder(), 'blobs'))).toEqual([]);
    expect(sha256(await readFile((await get()) ?? ''))).toBe(sha256(large));
  });

  it('explains a refusal without and with a token', async () => {
    hub.faults.push({ status: 403, headers: { 'x-error-code': 'GatedRepo' } });
    await expect(get()).rejects.toThrow(/access is refused.*403 GatedRepo.*with the account that the token belongs to/);
    const { token: _, ...anonymous } = options;
    options = anonymous;
    hub.faults.push({ status: 401 });
    await expect(get()).rejects.toThrow(new RegExp(`Accept the terms at ${hub.endpoint}/datasets/owner/set and set HF_TOKEN`));
  });

  it('waits as long as the server asks', async () => {
    hub.faults.push({ status: 429, headers: { 'retry-after': '0' } });
    options = { ...options, retryDelayMs: 60_000, retryDelayLimitMs: 60_000 };
    await get('data/other.bin');
  });

  it('names an unknown repository, and a hub that does not answer', async () => {
    const unknown: Repository = { host: 'huggingface', id: 'owner/none', revision: commit };
    await expect(downloadFile(unknown, commit, { path: 'a' }, options)).rejects.toThrow(/no such repository.*RepoNotFound/);
    await hub.close();
    await expect(get()).rejects.toThrow(/no answer from the server.*3 tries.*HF_ENDPOINT.*--from/);
  });

  it('recognises an LFS pointer in place of the file', async () => {
    const pointer = new TextEncoder().encode(
      `version https://git-lfs.github.com/spec/v1\noid sha256:${sha256(large)}\nsize 200000\n`,
    );
    hub.files.set('small-pointer.parquet', pointer);
    await expect(get('small-pointer.parquet')).rejects.toThrow(/Git LFS pointer stands in place of the file.*200000 bytes/);
  });

  it('stops at once when it is told to', async () => {
    hub.faults.push({ stallAt: 0.3 });
    const controller = new AbortController();
    options = { ...options, stallMs: 60_000, signal: controller.signal };
    const running = get();
    setTimeout(() => controller.abort(new Error('enough')), 100);
    await expect(running).rejects.toThrow('enough');
  });
});
