// JSON and JSON Lines with a schema: checked as they are read, and an error names the file, the line and the field.
import type { z } from 'zod';
import { DataError } from '../errors.js';

/** The records of a JSONL text, blank lines skipped; `where` names the file. Throws DataError at `where:line`. */
export function parseJsonLines<S extends z.ZodType>(source: string, schema: S, where: string): z.infer<S>[] {
  return source
    .replace(/^\ufeff/, '')
    .split('\n')
    .flatMap((line, i) => (line.trim() === '' ? [] : [parseJson(line, schema, `${where}:${i + 1}`)]));
}

/** One JSON value of the schema's shape. Throws DataError. */
export function parseJson<S extends z.ZodType>(source: string, schema: S, where: string): z.infer<S> {
  let json: unknown;
  try {
    json = JSON.parse(source);
  } catch (cause) {
    throw new DataError('not JSON', { where, found: cause instanceof Error ? cause.message : String(cause), cause });
  }
  const parsed = schema.safeParse(json);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const field = issue?.path.join('.');
  throw new DataError(`${field ? `field ${field}: ` : ''}${issue?.message ?? 'malformed'}`, { where });
}
