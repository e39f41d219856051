// A benchmark over a JSONL file: entries at once, questions with their pictures when they are asked.
import { readFile, stat } from 'node:fs/promises';
import { DataError } from '../errors.js';
import { loadImage } from '../media/image.js';
import type { Benchmark, Image, Question } from '../types.js';
import { sha256Of } from './hub/digest.js';
import { indexLines } from './indexed-lines.js';

export interface LinesBenchmark {
  readonly name: string;
  readonly split: string;
  readonly file: string;
  /** Reads a line as a question whose pictures are still files; `where` is for its errors. */
  parse(line: string, where: string, position: number): StoredQuestion;
}

export interface StoredQuestion {
  readonly id: string;
  readonly type: string;
  readonly text: string;
  readonly images: readonly PictureFile[];
  readonly answers: readonly string[];
  readonly ranges?: Question['ranges'] & {};
  readonly expected?: readonly string[];
  /** Why the question cannot be asked; thrown when it is loaded. */
  readonly damage?: string;
}

export interface PictureFile {
  readonly path: string;
  /** The promised content, where the file's name promises one. */
  readonly sha256?: string;
}

/** Checks every line once. Throws DataError for a malformed line, a repeated id, or a file without questions. */
export async function openLinesBenchmark({ name, split, file, parse }: LinesBenchmark): Promise<Benchmark> {
  const positions = new Map<string, number>();
  const entries: { readonly id: string; readonly type: string }[] = [];
  const lines = await indexLines(file, (line, lineNumber) => {
    const where = `${file}:${lineNumber}`;
    const { id, type } = parse(line, where, entries.length);
    if (positions.has(id))
      throw new DataError('an id is used twice', { where, found: id, remedy: 'Give every question an id of its own.' });
    positions.set(id, entries.length);
    entries.push({ id, type });
  });
  if (entries.length === 0) throw new DataError('there is no question', { where: file });
  return {
    name,
    split,
    sha256: lines.sha256,
    entries,
    async load(id) {
      const position = positions.get(id);
      if (position === undefined) throw new DataError('no such question', { where: file, found: id });
      return toQuestion(parse(await lines.read(position), `${file}, question ${id}`, position), file);
    },
  };
}

async function toQuestion({ images, damage, ...question }: StoredQuestion, file: string): Promise<Question> {
  if (damage !== undefined)
    throw new DataError('the question cannot be asked', { where: `${file}, question ${question.id}`, found: damage });
  return { ...question, images: await Promise.all(images.map(readPicture)) };
}

/** No pipe and no device, which may never end. */
async function readRegularFile(path: string): Promise<Buffer> {
  if (!(await stat(path)).isFile()) throw new DataError('not a file', { where: path });
  return readFile(path);
}

async function readPicture({ path, sha256 }: PictureFile): Promise<Image> {
  const bytes = await readRegularFile(path).catch((error: NodeJS.ErrnoException) => {
    throw new DataError('the picture cannot be read', { where: path, found: error.code ?? error.message, cause: error });
  });
  if (sha256 !== undefined && sha256Of(bytes) !== sha256) {
    throw new DataError('the picture is not the one that was prepared', { where: path, remedy: 'Prepare the data set again.' });
  }
  return loadImage(bytes, path);
}
