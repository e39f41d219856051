// What a data set's declaration says (one small file per set under benchmarks/), and the question every source row becomes.
import type { z } from 'zod';
import { type CellRow, extraFields, parseRow } from './cells.js';
import type { FilePin, Repository } from './hub/repository.js';
import type { Place, SourceQuestion } from './source-question.js';

/** A data set: where it comes from, which files, how a row becomes a question, how many there must be. */
export interface DataSource {
  /** The name on the command line. */
  readonly name: string;
  readonly title: string;
  readonly role: 'benchmark' | 'training';
  readonly split: string;
  readonly repository: Repository;
  /** Files whose content is known in advance. */
  readonly pins: Readonly<Record<string, FilePin>>;
  readonly licence: string;
  /** Questions after the filter, and rows before it; null where nobody has counted them. */
  readonly expected: { readonly questions: number | null; readonly sourceRows: number | null };
  readonly contents: TableContents | RecordContents;
}

/** Parquet files with the pictures inside. */
export interface TableContents {
  readonly kind: 'table';
  readonly files: FileChoice;
  readonly columns: { readonly required: readonly string[]; readonly optional: readonly string[]; readonly pictures: string };
  convert(values: CellRow, place: Place): SourceQuestion | null;
}

/** A JSON array or JSONL file with the pictures beside it. */
export interface RecordContents {
  readonly kind: 'records';
  readonly file: string;
  /** A second array whose records carry more about the same ids; may be absent. */
  readonly details?: { readonly file: string; readonly key: string };
  convert(values: CellRow, place: Place, details: CellRow | null): SourceQuestion | null;
}

/** Either one path, or every path that matches (sorted) where the number of parts is not known in advance. */
export type FileChoice = { readonly path: string } | { readonly matching: RegExp; readonly except?: RegExp };

/** Declares parquet contents by a row's schema; columns it does not name but which are plain values are kept as meta. */
export function table<S extends z.ZodObject>(declared: {
  readonly files: FileChoice;
  readonly pictures: string & keyof z.infer<S>;
  readonly row: S;
  readonly question: (row: z.infer<S>, place: Place) => SourceQuestion | null;
}): TableContents {
  const { files, pictures, row } = declared;
  const names = Object.keys(row.shape);
  const optional = names.filter((name) => row.shape[name]?.safeParse(undefined).success);
  return {
    kind: 'table',
    files,
    columns: { required: names.filter((name) => !optional.includes(name)), optional, pictures },
    convert: (values, place) => withExtras(declared.question(parseRow(row, values, place), place), values, names),
  };
}

/** Declares JSON contents by a record's schema; fields it does not name are kept as meta. */
export function records<S extends z.ZodObject>(declared: {
  readonly file: string;
  readonly details?: { readonly file: string; readonly key: string };
  readonly record: S;
  readonly question: (record: z.infer<S>, place: Place, details: CellRow | null) => SourceQuestion | null;
}): RecordContents {
  const names = Object.keys(declared.record.shape);
  return {
    kind: 'records',
    file: declared.file,
    ...(declared.details && { details: declared.details }),
    convert: (values, place, details) =>
      withExtras(declared.question(parseRow(declared.record, values, place), place, details), values, names),
  };
}

function withExtras(question: SourceQuestion | null, values: CellRow, known: readonly string[]): SourceQuestion | null {
  return question && { ...question, meta: { ...extraFields(values, known), ...question.meta } };
}
