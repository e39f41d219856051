// Anybody's own questions: JSONL of {id, question, images, answers}, with the pictures beside the file.
import { basename, dirname, resolve } from 'node:path';
import { z } from 'zod';
import type { Benchmark } from '../types.js';
import { parseJson } from './json.js';
import { openLinesBenchmark } from './lines-benchmark.js';

const plainSchema = z.strictObject({
  id: z.union([z.string().min(1), z.number()]).transform(String),
  question: z.string().min(1),
  /** Paths from the JSONL file's folder. */
  images: z.array(z.string()).default([]),
  /** Any of these is right; none leaves the question out of the rate. */
  answers: z.array(z.string()).default([]),
  type: z.string().default('question'),
  meta: z.record(z.string(), z.unknown()).optional(),
});

/** Throws DataError that names the line and the field of a mistake. */
export function openPlain(file: string): Promise<Benchmark> {
  return openLinesBenchmark({
    name: basename(file).replace(/\.jsonl$/, ''),
    split: 'all',
    file,
    parse(line, where) {
      const { id, type, question, images, answers } = parseJson(line, plainSchema, where);
      return { id, type, text: question, images: images.map((path) => ({ path: resolve(dirname(file), path) })), answers };
    },
  });
}
