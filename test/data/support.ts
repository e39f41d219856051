// What the data tests share: temporary folders, and declarations fitted to the size of a fixture.
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import { dataSource } from '../../benchmarks/registry.js';
import { fixtures } from '../../scripts/fixtures/index.js';
import { prepare } from '../../src/data/prepare.js';
import type { PreparedManifest, PreparedQuestion } from '../../src/data/prepared.js';
import type { DataSource } from '../../src/data/source.js';
import { folderFiles } from '../../src/data/source-files.js';

/** A folder that goes when the file's tests are done. */
export async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'ssr-data-'));
  afterAll(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** The published declaration with the numbers of its fixture. */
export function fixtureSource(name: string): DataSource {
  const fixture = fixtures[name];
  if (fixture === undefined) throw new Error(`no fixture ${name}`);
  return { ...dataSource(name), expected: { questions: fixture.questions, sourceRows: fixture.rows } };
}

export interface Prepared {
  readonly folder: string;
  readonly manifest: PreparedManifest;
  readonly questions: readonly PreparedQuestion[];
}

/** Writes the fixture and prepares it. */
export async function prepareFixture(name: string, root: string): Promise<Prepared> {
  const source = fixtureSource(name);
  await fixtures[name]?.write(join(root, 'sources', name));
  const folder = join(root, 'prepared', name);
  const manifest = await prepare(source, await folderFiles(join(root, 'sources', name)), { folder });
  return { folder, manifest, questions: await readQuestions(folder) };
}

export async function readQuestions(folder: string): Promise<PreparedQuestion[]> {
  const text = await readFile(join(folder, 'index.jsonl'), 'utf8');
  return text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as PreparedQuestion);
}
