// A prepared folder as a benchmark.
import { readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { z } from 'zod';
import { DataError } from '../errors.js';
import type { Benchmark } from '../types.js';
import { parseJson } from './json.js';
import { openLinesBenchmark, type StoredQuestion } from './lines-benchmark.js';
import { manifestSchema, type PreparedManifest, pictureFlags, preparedQuestionSchema } from './prepared.js';

/** Throws DataError when the folder is not prepared, or its index is not the one that was written. */
export async function openPrepared(folder: string): Promise<Benchmark> {
  const manifest = await readManifest(folder);
  const benchmark = await openLinesBenchmark({
    name: manifest.name,
    split: manifest.split,
    file: join(folder, 'index.jsonl'),
    parse: (line, where) => parsePrepared(line, where, folder),
  });
  const expected = manifest.sha256['index.jsonl'];
  if (benchmark.sha256 !== expected) {
    throw new DataError('the index is not the one that was prepared', {
      where: join(folder, 'index.jsonl'),
      expected: `SHA-256 ${expected}`,
      found: benchmark.sha256,
      remedy: `Run: ssr data prepare ${manifest.name}`,
    });
  }
  return benchmark;
}

/** Throws DataError when there is none. */
export async function readManifest(folder: string): Promise<PreparedManifest> {
  const path = join(folder, 'manifest.json');
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new DataError('not a prepared data set', {
      where: folder,
      expected: 'manifest.json',
      found: error.code ?? error.message,
      remedy: `Run: ssr data prepare ${basename(folder)}`,
      cause: error,
    });
  });
  return parseJson(text, manifestSchema, path);
}

function parsePrepared(line: string, where: string, folder: string): StoredQuestion {
  const { id, type, question, images, answers, expected, flags, meta } = parseJson(line, preparedQuestionSchema, where);
  const damage = flags?.filter((flag) => pictureFlags.includes(flag)) ?? [];
  const ranges = rangesOf(meta?.other_answers);
  const problems = Array.isArray(meta?.image_problems) ? `: ${meta.image_problems.join('; ')}` : '';
  return {
    id,
    type,
    text: question,
    images: images.map((name) => ({ path: join(folder, name), sha256: basename(name).slice(0, 64) })),
    answers,
    ...(ranges.length > 0 && { ranges }),
    ...(expected && { expected }),
    ...(damage.length > 0 && { damage: damage.join(', ') + problems }),
  };
}

const rangeSchema = z.object({ range: z.tuple([z.number(), z.number()]) });

/** InfoSeek's aliases that are no text: {"wikidata": 5.0, "range": [4.5, 5.5]}. */
function rangesOf(otherAnswers: unknown): [number, number][] {
  return [otherAnswers ?? []].flat().flatMap((other) => {
    const parsed = rangeSchema.safeParse(other);
    return parsed.success ? [parsed.data.range] : [];
  });
}
