// A corpus on this machine: a JSONL file of passages, or a folder whose text files are passages; its hash names it in recordings.
import { createHash } from 'node:crypto';
import { readdir, readFile, stat } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import { z } from 'zod';
import { DataError, UsageError } from '../../errors.js';
import type { Passage } from './local.js';

export interface Corpus {
  readonly passages: readonly Passage[];
  /** Hex SHA-256 over ids and texts. */
  readonly sha256: string;
}

const lineSchema = z
  .object({ id: z.union([z.string(), z.number()]), text: z.string().optional(), contents: z.string().optional() })
  .refine(({ text, contents }) => text !== undefined || contents !== undefined, 'expected a field text (or contents)');

/** Lines are {"id", "text"} (or Search-R1's {"id", "contents"}). Throws UsageError when the path cannot be read, DataError for contents. */
export async function readCorpus(path: string): Promise<Corpus> {
  const isFolder = await stat(path).then(
    (found) => found.isDirectory(),
    (cause) => {
      throw new UsageError('cannot read the corpus', { where: path, found: (cause as NodeJS.ErrnoException).code ?? '', cause });
    },
  );
  const passages = isFolder ? await readFolder(path) : parseLines(await readFile(path, 'utf8'), path);
  if (passages.length === 0) {
    throw new DataError('the corpus is empty', { where: path, expected: isFolder ? 'files *.txt or *.md' : 'JSONL passages' });
  }
  refuseRepeatedIds(passages, path);
  return { passages, sha256: hashOf(passages) };
}

async function readFolder(folder: string): Promise<Passage[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const paths = entries
    .filter((entry) => entry.isFile() && /\.(?:txt|md)$/i.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
  return Promise.all(
    paths.map(async (path) => ({
      id: relative(folder, path).split(sep).join('/'),
      text: (await readFile(path, 'utf8')).trim(),
    })),
  );
}

function parseLines(source: string, where: string): Passage[] {
  return source.split('\n').flatMap((line, i) => {
    if (line.trim() === '') return [];
    const parsed = lineSchema.safeParse(jsonOrUndefined(line));
    if (parsed.success) {
      const { id, text, contents } = parsed.data;
      return [{ id: String(id), text: text ?? contents ?? '' }];
    }
    throw new DataError(parsed.error.issues[0]?.message ?? 'malformed', {
      where: `${where}:${i + 1}`,
      expected: '{"id": "...", "text": "..."}',
    });
  });
}

function jsonOrUndefined(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

function refuseRepeatedIds(passages: readonly Passage[], where: string): void {
  const seen = new Set<string>();
  for (const { id } of passages) {
    if (seen.has(id)) throw new DataError('two passages have one id', { where, found: id });
    seen.add(id);
  }
}

function hashOf(passages: readonly Passage[]): string {
  const hash = createHash('sha256');
  for (const { id, text } of passages) hash.update(`${JSON.stringify([id, text])}\n`);
  return hash.digest('hex');
}
