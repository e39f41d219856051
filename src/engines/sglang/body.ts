// The bytes of a /generate request. Pictures are encoded once and spliced in by reference, and the ids of a history are
// written once and extended, since both dwarf everything else that a request holds.
import type { GenerateFields } from './protocol.js';

/** A request body in pieces that are sent one after another. */
export interface Body {
  readonly pieces: readonly Uint8Array[];
  readonly byteLength: number;
}

/** The ids of one prompt as comma-separated text, in pieces that follow one another. */
export type IdsPieces = readonly Uint8Array[];

/** Pictures are JSON strings in bytes. */
export interface Prompt {
  readonly ids: IdsPieces;
  readonly images: readonly Uint8Array[];
}

export function jsonBody(value: unknown): Body {
  return bodyOf([Buffer.from(JSON.stringify(value))]);
}

/** A single prompt: `input_ids` is flat and `image_data` a flat list. */
export function singleBody({ ids, images }: Prompt, fields: GenerateFields): Body {
  const pictures = images.length === 0 ? [] : [text(',"image_data":'), ...list(images)];
  return bodyOf([text(`${open(fields)},"input_ids":[`), ...ids, text(']'), ...pictures, text('}')]);
}

/** Several prompts with the same pictures: `input_ids` and `image_data` hold one list per row. */
export function batchBody(rows: readonly IdsPieces[], images: readonly Uint8Array[], fields: GenerateFields): Body {
  const ids = rows.flatMap((row, i) => [i === 0 ? text('[') : text(',['), ...row, text(']')]);
  const head = [text(`${open(fields)},"input_ids":[`), ...ids, text(']')];
  if (images.length === 0) return bodyOf([...head, text('}')]);
  const nested = rows.flatMap((_, i) => [...(i === 0 ? [] : [text(',')]), ...list(images)]);
  return bodyOf([...head, text(',"image_data":['), ...nested, text(']}')]);
}

/** Ids as text that grows with its history: a context only ever gets longer. */
export class IdsText {
  #ids: number[] = [];
  #bytes = Buffer.alloc(0);
  #length = 0;

  /** Stays as it is while longer histories are asked for. */
  of(ids: readonly number[]): Uint8Array {
    if (!this.#isExtendedBy(ids)) [this.#ids, this.#bytes, this.#length] = [[], Buffer.alloc(0), 0];
    const added = ids.slice(this.#ids.length);
    if (added.length > 0) {
      this.#append(`${this.#length === 0 ? '' : ','}${added.join(',')}`);
      for (const id of added) this.#ids.push(id);
    }
    return this.#bytes.subarray(0, this.#length);
  }

  #isExtendedBy(ids: readonly number[]): boolean {
    if (ids.length < this.#ids.length) return false;
    for (let i = 0; i < this.#ids.length; i++) if (ids[i] !== this.#ids[i]) return false;
    return true;
  }

  #append(added: string): void {
    if (this.#length + added.length > this.#bytes.byteLength) {
      const grown = Buffer.allocUnsafe(2 * (this.#length + added.length));
      grown.set(this.#bytes.subarray(0, this.#length));
      this.#bytes = grown;
    }
    this.#length += this.#bytes.write(added, this.#length, 'latin1');
  }
}

/** The object without its closing brace; it is never empty. */
function open(fields: GenerateFields): string {
  return JSON.stringify(fields).slice(0, -1);
}

function list(images: readonly Uint8Array[]): Uint8Array[] {
  return [text('['), ...images.flatMap((image, i) => (i === 0 ? [image] : [text(','), image])), text(']')];
}

function text(value: string): Uint8Array {
  return Buffer.from(value);
}

function bodyOf(pieces: readonly Uint8Array[]): Body {
  return { pieces, byteLength: pieces.reduce((sum, piece) => sum + piece.byteLength, 0) };
}
