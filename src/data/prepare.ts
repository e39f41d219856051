// Preparing: a source's rows become a folder that evaluation can read without parquet, base64 or a network.
// One row group at a time is in memory; start it in a process of its own, whose memory goes back to the system at the end.
import { dirname, join } from 'node:path';
import pLimit from 'p-limit';
import { DataError } from '../errors.js';
import { safeParts } from './hub/cache.js';
import { withLock } from './hub/lock.js';
import { describeRepository } from './hub/repository.js';
import { preparePicture } from './picture.js';
import { type PreparedManifest, type PreparedQuestion, pictureFlags } from './prepared.js';
import { type Counted, createPreparedWriter, type PreparedWriter } from './prepared-writer.js';
import type { DataSource } from './source.js';
import type { SourceFiles } from './source-files.js';
import type { Meta, PictureSource, SourceQuestion } from './source-question.js';
import { type OpenSource, openSource, type SourceRow } from './source-rows.js';

export type PrepareEvent =
  /** Before a row group is read: what it will need. */
  | { readonly kind: 'memory'; readonly estimatedBytes: number }
  | { readonly kind: 'rows'; readonly done: number; readonly total: number; readonly questions: number }
  | { readonly kind: 'wait'; readonly folder: string };

export interface PrepareOptions {
  /** The prepared folder; replaced when it exists. */
  readonly folder: string;
  /** Accept another number of questions than is published. */
  readonly allowCountMismatch?: boolean;
  readonly onEvent?: (event: PrepareEvent) => void;
  readonly signal?: AbortSignal;
}

/** Pictures that are fetched and decoded at once, and rows that wait for them. */
const picturesAtOnce = 4;
const rowsPerBatch = 32;

/** Throws DataError when a file, a column or the number of rows is not as declared; damaged rows are kept, flagged and counted. */
export async function prepare(source: DataSource, files: SourceFiles, options: PrepareOptions): Promise<PreparedManifest> {
  const lock = {
    onWait: () => options.onEvent?.({ kind: 'wait', folder: options.folder }),
    ...(options.signal && { signal: options.signal }),
  };
  return withLock(join(dirname(options.folder), `.${source.name}.lock`), lock, async () => {
    const opened = await openSource(source, files);
    try {
      checkCount('rows', source, source.expected.sourceRows, opened.rows, options);
      options.onEvent?.({ kind: 'memory', estimatedBytes: opened.memoryBytes });
      return await write(source, files, opened, options);
    } finally {
      await opened.close();
    }
  });
}

async function write(
  source: DataSource,
  files: SourceFiles,
  opened: OpenSource,
  options: PrepareOptions,
): Promise<PreparedManifest> {
  const writer = await createPreparedWriter(options.folder);
  try {
    await writeQuestions(files, opened, writer, options);
    return await writer.finish((counted) => {
      checkCount('questions', source, source.expected.questions, counted.questions, options);
      return manifestOf(source, files, opened, counted);
    });
  } catch (error) {
    await writer.discard();
    throw error;
  }
}

async function writeQuestions(
  files: SourceFiles,
  opened: OpenSource,
  writer: PreparedWriter,
  options: PrepareOptions,
): Promise<void> {
  const uses = new Map<string, number>();
  const limit = pLimit(picturesAtOnce);
  let done = 0;
  let questions = 0;
  for await (const batch of batches(opened.read(), rowsPerBatch)) {
    options.signal?.throwIfAborted();
    const kept = batch.filter((row): row is SourceRow & { question: SourceQuestion } => row.question !== null);
    const prepared = await allOrFirstError(
      kept.map((row) => limit(async () => ({ row, pictures: await readPictures(row.question, files, writer) }))),
    );
    for (const { row, pictures } of prepared) {
      await writer.addQuestion(toPrepared(row.question, row.place, pictures, uses));
      questions += 1;
    }
    done += batch.length;
    options.onEvent?.({ kind: 'rows', done, total: opened.rows, questions });
  }
}

interface Pictures {
  readonly names: readonly string[];
  readonly flags: readonly string[];
  readonly problems: readonly string[];
}

async function readPictures({ pictures }: SourceQuestion, files: SourceFiles, writer: PreparedWriter): Promise<Pictures> {
  const names: string[] = [];
  const flags: string[] = [];
  const problems: string[] = [];
  for (const source of pictures) {
    const bytes = await pictureBytes(source, files);
    const picture = typeof bytes === 'string' ? null : await preparePicture(bytes);
    if (picture === null || picture.kind === 'undecodable') {
      flags.push(picture === null ? 'image-missing' : 'image-undecodable');
      problems.push(picture === null ? String(bytes) : picture.reason);
      continue;
    }
    if (picture.converted) flags.push('image-converted');
    await writer.addImage(picture.name, picture.bytes);
    names.push(picture.name);
  }
  return { names, flags, problems };
}

/** The encoded picture, or why there is none. */
async function pictureBytes(source: PictureSource, files: SourceFiles): Promise<Uint8Array | string> {
  if (source.kind === 'bytes') return source.bytes;
  if (source.kind === 'missing') return source.reason;
  return (await files.read(safeParts(source.path).join('/'))) ?? `no such file: ${source.path}`;
}

function toPrepared(
  question: SourceQuestion,
  place: PreparedQuestion['source'] & {},
  pictures: Pictures,
  uses: Map<string, number>,
): PreparedQuestion {
  const times = (uses.get(question.id) ?? 0) + 1;
  uses.set(question.id, times);
  const flags = new Set([...(question.flags ?? []), ...pictures.flags]);
  if (times > 1) flags.add('duplicate-id');
  if (question.answers.length === 0) flags.add('no-gold');
  const meta: Meta = {
    ...withoutEmpty(question.meta ?? {}),
    ...(pictures.problems.length > 0 && { image_problems: pictures.problems }),
  };
  return {
    // Ids are the source's own; one that is used again is told apart by its turn.
    id: times === 1 ? question.id : `${question.id}~${times}`,
    type: question.type,
    question: question.question,
    // All or none: a question that has lost one of its pictures is not asked.
    images: [...flags].some((flag) => pictureFlags.includes(flag)) ? [] : [...pictures.names],
    answers: [...question.answers],
    ...(flags.size > 0 && { flags: [...flags].sort() }),
    ...(Object.keys(meta).length > 0 && { meta }),
    source: place,
  };
}

function withoutEmpty(meta: Meta): Meta {
  return Object.fromEntries(Object.entries(meta).filter(([, value]) => value !== '' && value !== null));
}

function manifestOf(source: DataSource, files: SourceFiles, opened: OpenSource, counted: Counted): PreparedManifest {
  return {
    schema: 1,
    name: source.name,
    split: source.split,
    title: source.title,
    licence: source.licence,
    questions: counted.questions,
    types: counted.types,
    expected: source.expected,
    source: {
      repository: describeRepository(source.repository),
      revision: files.revision,
      rows: opened.rows,
      files: [...opened.files],
    },
    images: counted.images,
    flags: counted.flags,
    sha256: { 'index.jsonl': counted.indexSha256 },
  };
}

function checkCount(what: string, source: DataSource, expected: number | null, found: number, options: PrepareOptions): void {
  if (expected === null || expected === found || options.allowCountMismatch) return;
  throw new DataError(`the number of ${what} is not the published one`, {
    where: source.name,
    expected: String(expected),
    found: String(found),
    remedy: 'The source may have changed; --allow-count-mismatch prepares it all the same, but its rates cannot be compared.',
  });
}

/** Fails only when all are done, so that nothing is still being written when the folder is thrown away. */
async function allOrFirstError<T>(promises: readonly Promise<T>[]): Promise<T[]> {
  await Promise.allSettled(promises);
  return Promise.all(promises);
}

async function* batches<T>(items: AsyncIterable<T>, size: number): AsyncGenerator<T[]> {
  let batch: T[] = [];
  for await (const item of items) {
    batch.push(item);
    if (batch.length < size) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}
