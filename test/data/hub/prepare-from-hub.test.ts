import { readdir, readFile } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { dataSources } from '../../../benchmarks/registry.js';
import { fixtures } from '../../../scripts/fixtures/index.js';
import type { HubOptions } from '../../../src/data/hub/options.js';
import { prepare } from '../../../src/data/prepare.js';
import type { DataSource } from '../../../src/data/source.js';
import { repositoryFiles } from '../../../src/data/source-files.js';
import { verifyPrepared } from '../../../src/data/verify.js';
import { fixtureSource, temporaryFolder } from '../support.js';
import { type LoopbackHub, sha256, startHub } from './server.js';

let hub: LoopbackHub | undefined;
afterEach(async () => {
  await hub?.close();
  hub = undefined;
});

/** The fixture's files on a hub; the declaration is read at the hub's commit, or at the hash of its file on GitHub. */
async function publish(name: string): Promise<{ source: DataSource; options: HubOptions; folder: string }> {
  const root = await temporaryFolder();
  await fixtures[name]?.write(join(root, 'source'));
  const files = await readTree(join(root, 'source'));
  const declared = fixtureSource(name);
  hub = await startHub(files, declared.repository.id);
  const pins = Object.fromEntries(
    Object.keys(declared.pins).map((path) => [
      path,
      { sha256: sha256(files[path] ?? new Uint8Array()), sizeBytes: files[path]?.length ?? 0 },
    ]),
  );
  const source: DataSource = { ...declared, pins, repository: { ...declared.repository, revision: 'main' } };
  const options: HubOptions = {
    endpoint: hub.endpoint,
    githubMedia: `${hub.content}/media`,
    cacheFolder: join(root, 'cache'),
    githubCacheFolder: join(root, 'github'),
    stallMs: 300,
    attempts: 3,
    retryDelayMs: 5,
    retryDelayLimitMs: 20,
  };
  return { source, options, folder: join(root, 'prepared', name) };
}

async function readTree(folder: string): Promise<Record<string, Uint8Array>> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  return Object.fromEntries(
    await Promise.all(paths.map(async (path) => [relative(folder, path).split(sep).join('/'), await readFile(path)])),
  );
}

describe('preparing from a hub', () => {
  it.each(dataSources.map(({ name }) => name))('%s: through a dropped connection', async (name) => {
    const { source, options, folder } = await publish(name);
    hub?.faults.push({ dropAt: 0.6 });
    const manifest = await prepare(source, await repositoryFiles(source.repository, source.pins, options), { folder });
    expect(manifest.questions).toBe(fixtures[name]?.questions);
    expect(manifest.source?.revision).toBe(
      source.repository.host === 'github' ? 'main' : '0123456789abcdef0123456789abcdef01234567',
    );
    expect((await verifyPrepared(folder)).faults).toEqual([]);
  });

  it('fetches only the files that are needed', async () => {
    const { source, options, folder } = await publish('simplevqa');
    await prepare(source, await repositoryFiles(source.repository, source.pins, options), { folder });
    expect(hub?.received.filter(({ path }) => path.startsWith('/objects/')).map(({ path }) => decodeURIComponent(path))).toEqual([
      '/objects/data/test-00000-of-00001.parquet?signature=1',
    ]);
  });

  it('asks once for each picture beside a JSON file', async () => {
    const { source, options, folder } = await publish('livevqa');
    await prepare(source, await repositoryFiles(source.repository, source.pins, options), { folder });
    expect(hub?.received.filter(({ method }) => method === 'HEAD')).toEqual([]);
    expect(hub?.received.filter(({ path }) => path.startsWith('/objects/')).length).toBe(5);
  });

  it('ends with the right message when access is refused, and works once it is granted', async () => {
    const { source, options, folder } = await publish('livevqa');
    hub?.faults.push({ status: 403, headers: { 'x-error-code': 'GatedRepo' } });
    const run = async () => prepare(source, await repositoryFiles(source.repository, source.pins, options), { folder });
    await expect(run()).rejects.toThrow(/Accept the terms at .*\/datasets\/ONE-Lab\/LiveVQA-Research-Preview and set HF_TOKEN/);
    expect((await run()).questions).toBe(5);
  });

  it('explains the pointer that GitHub gives for an LFS object', async () => {
    const { source, options, folder } = await publish('infoseek');
    const [path] = Object.keys(source.pins);
    const pointer = `version https://git-lfs.github.com/spec/v1\noid sha256:${source.pins[path ?? '']?.sha256}\nsize 277391783\n`;
    hub?.faults.push({ instead: new TextEncoder().encode(pointer) });
    await expect(prepare(source, await repositoryFiles(source.repository, source.pins, options), { folder })).rejects.toThrow(
      /Git LFS pointer/,
    );
  });
});
