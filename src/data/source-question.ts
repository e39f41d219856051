// A row of a source as a question, before its pictures are read.

export interface Place {
  readonly file: string;
  /** Position in the whole source, over all its files. */
  readonly row: number;
}

export type Meta = Readonly<Record<string, string | number | boolean | readonly unknown[] | null>>;

export type PictureSource =
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array }
  | { readonly kind: 'file'; readonly path: string }
  | { readonly kind: 'missing'; readonly reason: string };

export interface SourceQuestion {
  readonly id: string;
  readonly type: string;
  readonly question: string;
  /** The gold first, then its aliases. */
  readonly answers: readonly string[];
  readonly pictures: readonly PictureSource[];
  readonly meta?: Meta;
  /** Known damage of this row. */
  readonly flags?: readonly string[];
}
