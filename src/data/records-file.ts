// JSON arrays and JSONL files of a source as records, one after the other.
import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import type { CellRow } from './cells.js';
import { refuseLfsPointer } from './hub/lfs-pointer.js';
import { parseJson, parseJsonLines } from './json.js';

const recordSchema = z.record(z.string(), z.unknown());

/** Throws DataError for other contents. These files hold texts only, a few megabytes at most, so they are read whole. */
export async function readRecords(path: string): Promise<CellRow[]> {
  await refuseLfsPointer(path);
  const text = (await readFile(path, 'utf8')).replace(/^\uFEFF/, '');
  return path.endsWith('.jsonl') ? parseJsonLines(text, recordSchema, path) : parseJson(text, z.array(recordSchema), path);
}
