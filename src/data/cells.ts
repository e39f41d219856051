// Cells of source rows: schemas for the kinds of cell that the data sets share, and cleaning that loses no answer.
import { z } from 'zod';
import { DataError } from '../errors.js';
import type { Meta, PictureSource, Place } from './source-question.js';

export type CellRow = Readonly<Record<string, unknown>>;

/** Parquet gives int64 as bigint. */
export const idCell = z.union([z.string().min(1), z.bigint(), z.number()]).transform(String);

export const textCell = z.string();

/** An absent or null text is an empty one. */
export const optionalTextCell = z
  .string()
  .nullish()
  .transform((text) => text ?? '');

/** Hugging Face's Image feature, and the same struct inside lists. */
export const imageCell = z.object({ bytes: z.instanceof(Uint8Array).nullish(), path: z.string().nullish() });

/** Throws DataError that names the row and says what the row looks like. */
export function parseRow<S extends z.ZodType>(schema: S, values: CellRow, { file, row }: Place): z.infer<S> {
  const parsed = schema.safeParse(values);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new DataError(`column ${issue?.path.join('.') || '?'}: ${issue?.message ?? 'malformed'}`, {
    where: `${file}, row ${row}`,
    found: shapeOf(values),
    remedy: 'The source has changed, or is another file than expected.',
  });
}

/** Column names with the kinds of their values. */
function shapeOf(values: CellRow): string {
  const kind = (value: unknown): string =>
    value === null ? 'null' : value instanceof Uint8Array ? 'bytes' : Array.isArray(value) ? 'list' : typeof value;
  return Object.entries(values)
    .map(([name, value]) => `${name}: ${kind(value)}`)
    .join(', ');
}

/** Fields that a declaration does not name and that are plain values; long texts are cut out, they are page contents. */
export function extraFields(values: CellRow, known: readonly string[]): Meta {
  const extras = Object.entries(values).filter(([name]) => !known.includes(name));
  return Object.fromEntries(
    extras.flatMap(([name, value]): [string, string | number | boolean][] => {
      if (typeof value === 'bigint') return [[name, String(value)]];
      if (typeof value === 'string') return value.length <= longestMeta ? [[name, value]] : [];
      return typeof value === 'number' || typeof value === 'boolean' ? [[name, value]] : [];
    }),
  );
}

const longestMeta = 2000;

export function pictureOf(cell: z.infer<typeof imageCell> | null | undefined): PictureSource {
  if (cell?.bytes?.length) return { kind: 'bytes', bytes: cell.bytes };
  if (cell?.path) return { kind: 'file', path: cell.path };
  return { kind: 'missing', reason: 'the picture is empty in the source' };
}

/** Raw base64, with or without a `data:` prefix; line breaks are allowed. */
export function base64Picture(text: string): PictureSource {
  const bare = text.replace(/^data:[^,]*,/, '').replace(/\s+/g, '');
  const bytes = Buffer.from(bare, 'base64');
  const characters = bare.replace(/=+$/, '').length;
  const whole = bytes.length === Math.floor((characters * 3) / 4);
  if (bytes.length === 0 || !whole) return { kind: 'missing', reason: 'the picture is not base64' };
  return { kind: 'bytes', bytes };
}

/** Trimmed, without empty and repeated answers; the order stays, the gold first. */
export function goldAnswers(...answers: readonly (string | null | undefined)[]): string[] {
  return [...new Set(answers.map((answer) => answer?.trim() ?? '').filter((answer) => answer !== ''))];
}

/** Where training code put picture marks into the text. */
export function withoutImageMarks(text: string): string {
  return text.replace(/^(?:\s*<image>)+/, '').trim();
}

/** A JSON array in a string: its strings are answers; ranges and other values are kept apart. `null` when it is no JSON array. */
export function parseAliases(text: string): { readonly answers: string[]; readonly others: unknown[] } | null {
  let value: unknown;
  try {
    value = text.trim() === '' ? [] : JSON.parse(text);
  } catch {
    return null;
  }
  if (!Array.isArray(value)) return null;
  return { answers: value.filter((item) => typeof item === 'string'), others: value.filter((item) => typeof item !== 'string') };
}

/** The last part of a path of somebody's machine, with either kind of slash. */
export function fileName(path: string): string {
  return path.split(/[\\/]/).at(-1) ?? '';
}
