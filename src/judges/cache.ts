// Verdicts that were already paid for: a JSONL file, one line per verdict, appended as it comes and read whole at the start.
import { createHash } from 'node:crypto';
import { appendFile, mkdir, open, readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { z } from 'zod';
import { JudgeError } from '../errors.js';

/** All that a verdict depends on. */
export interface VerdictKey {
  readonly promptSha256: string;
  readonly model: string;
  /** Of the parameters sent with the request. */
  readonly parameters: Readonly<Record<string, unknown>>;
  readonly question: string;
  /** Hashes of the pictures that were shown to the judge. */
  readonly images: readonly string[];
  readonly gold: string;
  readonly answer: string;
}

export interface VerdictCache {
  get(key: VerdictKey): boolean | undefined;
  /** Resolves when the line is on disk. */
  set(key: VerdictKey, correct: boolean, reply: string): Promise<void>;
}

const lineSchema = z.object({ key: z.string(), correct: z.boolean() });

/** Lines that cannot be read (a torn one after a crash) are verdicts that are asked for again. Throws JudgeError for an unusable file. */
export async function openVerdictCache(file: string): Promise<VerdictCache> {
  const verdicts = new Map<string, boolean>();
  const text = await readExisting(file);
  for (const line of text.split('\n')) {
    const record = parseLine(line);
    if (record) verdicts.set(record.key, record.correct);
  }
  if (text !== '' && !text.endsWith('\n')) await append(file, '\n');
  return {
    get: (key) => verdicts.get(hash(key)),
    async set(key, correct, reply) {
      verdicts.set(hash(key), correct);
      const { model, question, gold, answer } = key;
      await append(file, `${JSON.stringify({ key: hash(key), correct, model, question, gold, answer, reply })}\n`);
    },
  };
}

/** For one process only. */
export function createMemoryCache(): VerdictCache {
  const verdicts = new Map<string, boolean>();
  return {
    get: (key) => verdicts.get(hash(key)),
    async set(key, correct) {
      verdicts.set(hash(key), correct);
    },
  };
}

export function hash(key: VerdictKey): string {
  const { promptSha256, model, parameters, question, images, gold, answer } = key;
  const sorted = Object.entries(parameters).sort(([a], [b]) => (a < b ? -1 : 1));
  return createHash('sha256')
    .update(JSON.stringify([promptSha256, model, sorted, question, images, gold, answer]))
    .digest('hex');
}

async function readExisting(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw unusable(file, error);
  }
  try {
    await mkdir(dirname(file), { recursive: true });
    await (await open(file, 'a')).close();
    return '';
  } catch (error) {
    throw unusable(file, error);
  }
}

function parseLine(line: string): z.infer<typeof lineSchema> | null {
  try {
    return lineSchema.safeParse(JSON.parse(line)).data ?? null;
  } catch {
    return null;
  }
}

/** One write of a whole line at the end, so that processes that share the file do not mix their lines. */
async function append(file: string, text: string): Promise<void> {
  await appendFile(file, text).catch((error: unknown) => {
    throw unusable(file, error);
  });
}

function unusable(file: string, error: unknown): JudgeError {
  return new JudgeError('the cache of verdicts cannot be used', {
    where: file,
    found: (error as NodeJS.ErrnoException).code ?? String(error),
    remedy: 'Name another file with --judge-cache.',
    cause: error,
  });
}
