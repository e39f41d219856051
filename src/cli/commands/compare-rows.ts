// An arm from a file: a config of the command line, or a published row of configs/rows with its settings, its reasoning and what of
// it is not known.
import { readFileSync } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
import { z } from 'zod';
import { UsageError } from '../../errors.js';
import { FIELDS, type FieldName } from '../options.js';
import type { Flags } from '../settings.js';

const scalar = z.union([z.string(), z.number(), z.boolean()]);

export const rowSchema = z.strictObject({
  row: z.strictObject({ name: z.string().min(1), note: z.string().optional() }),
  /** Where the row is published: table of results/paper, what identifies it there, its figures. */
  published: z
    .array(
      z.strictObject({
        table: z.string(),
        key: z.record(z.string(), z.string()),
        figures: z.record(z.string(), z.union([z.number(), z.string()])),
      }),
    )
    .min(1),
  settings: z.record(z.string(), scalar),
  reasoning: z.record(z.string(), scalar),
  /** What the paper does not tell; whoever runs the row decides it. */
  unknown: z.array(z.string()).min(1),
});

export interface ArmFile {
  readonly name: string;
  readonly config: string | undefined;
  readonly flags: Flags;
}

/** Throws UsageError naming the file and the field. */
export function readArmFile(path: string): ArmFile {
  const json = readJson(path);
  if (typeof json !== 'object' || json === null || !('row' in json)) {
    return { name: basename(path, '.json'), config: path, flags: {} };
  }
  const { row, settings, reasoning } = check(rowSchema, json, path);
  const flags: Flags = {};
  for (const [name, value] of Object.entries({ ...settings, ...reasoning })) {
    if (!Object.hasOwn(FIELDS, name)) throw new UsageError(`${name}: no such field`, { where: path });
    flags[name as FieldName] = FIELDS[name as FieldName].kind === 'path' ? resolve(dirname(path), String(value)) : String(value);
  }
  return { name: row.name, config: undefined, flags };
}

function readJson(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch (cause) {
    throw new UsageError('cannot read the config', { where: path, expected: 'JSON', cause });
  }
}

function check<Schema extends z.ZodType>(schema: Schema, json: unknown, where: string): z.infer<Schema> {
  const parsed = schema.safeParse(json);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new UsageError(`${issue?.path.join('.')}: ${issue?.message}`, { where });
}
