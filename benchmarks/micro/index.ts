// The micro benchmark as the evaluation sees it: questions with pictures from data/<split>/, and the tools that search its corpora.
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { parseJson, parseJsonLines } from '../../src/data/json.js';
import { DataError, UsageError } from '../../src/errors.js';
import { loadImage } from '../../src/media/image.js';
import { packageRoot } from '../../src/paths.js';
import { createCrop } from '../../src/tools/crop.js';
import { createLocalImageSearch } from '../../src/tools/image-search/local.js';
import { createLocalTextSearch } from '../../src/tools/text-search/local.js';
import type { Benchmark, Image, Question, Toolbox } from '../../src/types.js';

/** plain: the test set; hard: distractors, small details, one more hop; dev: for development. They are committed. */
export const publishedSplits = ['plain', 'hard', 'dev'] as const;
/** train is generated when it is needed. */
const microSplits = [...publishedSplits, 'train'] as const;

export interface MicroToolboxOptions {
  /** Most results per text search. */
  readonly textResults: number;
  /** Most results per image search. */
  readonly imageResults: number;
}

const dataFiles = ['index.jsonl', 'passages.jsonl', 'pictures.jsonl'] as const;
type DataFile = (typeof dataFiles)[number];

const sha256Schema = z.string().regex(/^[0-9a-f]{64}$/);
const imageSchema = z.string().regex(/^images\/[0-9a-f]{64}\.png$/, 'expected images/<sha256>.png');
const manifestSchema = z.object({
  schema: z.literal(1),
  name: z.literal('micro'),
  split: z.string(),
  questions: z.number().int().min(1),
  sha256: z.object({ 'index.jsonl': sha256Schema, 'passages.jsonl': sha256Schema, 'pictures.jsonl': sha256Schema }),
});
const questionSchema = z.object({
  id: z.string().min(1),
  type: z.string().min(1),
  question: z.string().min(1),
  images: z.array(imageSchema).min(1),
  answers: z.array(z.string().min(1)).min(1),
  expected: z.array(z.string().min(1)).min(1),
});
const passageSchema = z.object({ id: z.string(), text: z.string().min(1) });
const pictureSchema = z.object({ image: imageSchema, title: z.string().min(1) });

/** Reads and checks a split; pictures are read when a question is loaded. Throws UsageError for an unknown split, else DataError. */
export async function loadMicro(split: string, dataFolder: string = defaultDataFolder()): Promise<Benchmark> {
  const folder = splitFolder(split, dataFolder);
  const manifest = await readManifest(folder, split);
  const [index] = await Promise.all(dataFiles.map((name) => readChecked(folder, name, manifest.sha256[name])));
  const questions = parseJsonLines(index ?? '', questionSchema, join(folder, 'index.jsonl'));
  const byId = new Map(questions.map((question) => [question.id, question]));
  if (byId.size !== manifest.questions || questions.length !== manifest.questions) {
    throw new DataError('the questions are not those of the manifest', {
      where: join(folder, 'index.jsonl'),
      expected: `${manifest.questions} questions with different ids`,
      found: `${questions.length} with ${byId.size} ids`,
    });
  }
  return {
    name: 'micro',
    split,
    sha256: sha256(dataFiles.map((name) => `${manifest.sha256[name]}  ${name}\n`).join('')),
    entries: questions.map(({ id, type }) => ({ id, type })),
    async load(id): Promise<Question> {
      const record = byId.get(id);
      if (record === undefined) throw new DataError('no such question', { where: join(folder, 'index.jsonl'), found: id });
      const { type, question, images, answers, expected } = record;
      return {
        id,
        type,
        text: question,
        images: await Promise.all(images.map((name) => readPicture(folder, name))),
        answers,
        expected,
      };
    },
  };
}

/** The split's searches and the crop; the picture index is built by the first image search. Throws as loadMicro does. */
export async function microToolbox(
  split: string,
  { textResults, imageResults }: MicroToolboxOptions,
  dataFolder: string = defaultDataFolder(),
): Promise<Required<Toolbox>> {
  const folder = splitFolder(split, dataFolder);
  const { sha256: hashes } = await readManifest(folder, split);
  const read = (name: DataFile): Promise<string> => readChecked(folder, name, hashes[name]);
  const passages = parseJsonLines(await read('passages.jsonl'), passageSchema, join(folder, 'passages.jsonl'));
  const pictures = parseJsonLines(await read('pictures.jsonl'), pictureSchema, join(folder, 'pictures.jsonl'));
  return {
    textSearch: createLocalTextSearch(passages, { results: textResults }),
    imageSearch: createLocalImageSearch(
      pictures.map(({ image, title }) => ({ title, load: () => readPicture(folder, image) })),
      { results: imageResults },
    ),
    crop: createCrop(),
  };
}

function defaultDataFolder(): string {
  return join(packageRoot(), 'benchmarks/micro/data');
}

function splitFolder(split: string, dataFolder: string): string {
  if (!microSplits.some((known) => known === split)) {
    throw new UsageError('the micro benchmark has no such split', {
      found: split,
      expected: `one of: ${microSplits.join(', ')}`,
    });
  }
  return join(dataFolder, split);
}

async function readManifest(folder: string, split: string): Promise<z.infer<typeof manifestSchema>> {
  const path = join(folder, 'manifest.json');
  const manifest = parseJson((await readData(path)).toString(), manifestSchema, path);
  if (manifest.split === split) return manifest;
  throw new DataError('the manifest is of another split', { where: path, expected: split, found: manifest.split });
}

/** The text of a data file whose hash is the manifest's. */
async function readChecked(folder: string, name: DataFile, expected: string): Promise<string> {
  const bytes = await readData(join(folder, name));
  checkHash(bytes, expected, join(folder, name));
  return bytes.toString();
}

/** A picture, whose name is its hash. */
async function readPicture(folder: string, name: string): Promise<Image> {
  const path = join(folder, name);
  const bytes = await readData(path);
  checkHash(bytes, name.slice('images/'.length, -'.png'.length), path);
  return loadImage(bytes, path);
}

async function readData(path: string): Promise<Buffer> {
  try {
    return await readFile(path);
  } catch (cause) {
    const found = (cause as NodeJS.ErrnoException).code ?? String(cause);
    throw new DataError('cannot be read', { where: path, found, remedy: restore, cause });
  }
}

function checkHash(bytes: Uint8Array, expected: string, where: string): void {
  const found = sha256(bytes);
  if (found !== expected)
    throw new DataError('not the file that was published', { where, expected: `SHA-256 ${expected}`, found, remedy: restore });
}

const restore = 'Restore the data with git, or generate it again as benchmarks/micro/README.md says.';

function sha256(content: string | Uint8Array): string {
  return createHash('sha256').update(content).digest('hex');
}
