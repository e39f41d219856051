// What is on disk: whether a data set is prepared, and whether a prepared one is whole.
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { DataError } from '../errors.js';
import { sha256OfFile } from './hub/digest.js';
import { describeRepository } from './hub/repository.js';
import { indexLines } from './indexed-lines.js';
import { parseJson } from './json.js';
import { readManifest } from './loader.js';
import { imageSearchEntrySchema, type PreparedManifest, preparedQuestionSchema } from './prepared.js';
import type { DataSource } from './source.js';

export interface DataState {
  readonly name: string;
  readonly title: string;
  readonly role: DataSource['role'];
  /** `wrong-count`: prepared, but with another number of questions than is published. */
  readonly state: 'absent' | 'prepared' | 'wrong-count' | 'unreadable';
  readonly questions: number | null;
  readonly expectedQuestions: number | null;
  readonly bytes: number | null;
  readonly flags: Readonly<Record<string, number>>;
  readonly licence: string;
  readonly source: string;
  /** The commit that was prepared, else the one that is asked for. */
  readonly revision: string;
}

/** One row of `ssr data list`; reads only the manifest. */
export async function dataState(source: DataSource, dataFolder: string): Promise<DataState> {
  const folder = join(dataFolder, source.name);
  const names = await readdir(folder).catch(() => null);
  const manifest = names === null ? null : await readManifest(folder).catch(() => 'unreadable' as const);
  const prepared = typeof manifest === 'object' ? manifest : null;
  return {
    name: source.name,
    title: source.title,
    role: source.role,
    state: manifest === null ? 'absent' : prepared === null ? 'unreadable' : countState(source, prepared),
    questions: prepared?.questions ?? null,
    expectedQuestions: source.expected.questions,
    bytes: prepared?.images?.bytes ?? null,
    flags: prepared?.flags ?? {},
    licence: source.licence,
    source: describeRepository(source.repository),
    revision: prepared?.source?.revision ?? source.repository.revision,
  };
}

function countState({ expected }: DataSource, manifest: PreparedManifest): DataState['state'] {
  return expected.questions === null || expected.questions === manifest.questions ? 'prepared' : 'wrong-count';
}

export interface Verification {
  readonly questions: number;
  readonly images: number;
  /** One line per fault; empty when the folder is whole. */
  readonly faults: readonly string[];
}

/** Reads every byte of a prepared folder: hashes of the index and of all pictures, counts, and pictures that nobody refers to. */
export async function verifyPrepared(folder: string): Promise<Verification> {
  const manifest = await readManifest(folder);
  const faults: string[] = [];
  const named = new Set<string>();
  const ids = new Set<string>();
  const index = await indexLines(join(folder, 'index.jsonl'), (line, lineNumber) => {
    const question = parseJson(line, preparedQuestionSchema, `index.jsonl:${lineNumber}`);
    if (ids.has(question.id)) faults.push(`index.jsonl:${lineNumber}: the id ${question.id} is used twice`);
    ids.add(question.id);
    for (const image of question.images) named.add(image);
  });
  if (index.sha256 !== manifest.sha256['index.jsonl']) faults.push('index.jsonl: not the file that was written');
  if (index.count !== manifest.questions)
    faults.push(`index.jsonl: ${index.count} questions, the manifest says ${manifest.questions}`);
  await verifyImageSearch(folder, manifest, named, faults);
  const images = await verifyImages(folder, named, faults);
  return { questions: index.count, images, faults };
}

async function verifyImageSearch(
  folder: string,
  manifest: PreparedManifest,
  named: Set<string>,
  faults: string[],
): Promise<void> {
  const expected = manifest.sha256['image-search.jsonl'];
  if (expected === undefined) return;
  const lines = await indexLines(join(folder, 'image-search.jsonl'), (line, lineNumber) => {
    const entry = parseJson(line, imageSearchEntrySchema, `image-search.jsonl:${lineNumber}`);
    for (const { thumbnail } of entry.results) if (thumbnail) named.add(thumbnail);
  });
  if (lines.sha256 !== expected) faults.push('image-search.jsonl: not the file that was written');
}

async function verifyImages(folder: string, named: ReadonlySet<string>, faults: string[]): Promise<number> {
  const present = new Set(
    (
      await readdir(join(folder, 'images')).catch((cause: unknown) => {
        throw new DataError('the pictures are missing', { where: join(folder, 'images'), cause });
      })
    ).map((name) => `images/${name}`),
  );
  for (const name of named) if (!present.has(name)) faults.push(`${name}: missing`);
  for (const name of present) {
    if (!named.has(name)) faults.push(`${name}: no question refers to it`);
    else if ((await sha256OfFile(join(folder, name))) !== name.slice('images/'.length, 'images/'.length + 64)) {
      faults.push(`${name}: the content is not what the name says`);
    }
  }
  return present.size;
}
