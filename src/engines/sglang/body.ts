// The bytes of a /generate request. Pictures are encoded once and spliced in by reference, and the ids of a history are
// written once and extended, since both dwarf everything else that a request holds.
import type { GenerateFields } from './protocol.js';

/** A request body in pieces that are sent one after another. */
export interface Body {
  readonly pieces: readonly Uint8Array[];
  readonly byteLength: number;
}

/** One prompt: ids as comma-separated text, pictures as JSON strings in bytes. */
export interface Prompt {
  readonly idsText: string;
  readonly images: readonly Uint8Array[];
}

export function jsonBody(value: unknown): Body {
  return bodyOf([Buffer.from(JSON.stringify(value))]);
}

/** A single prompt: `input_ids` is flat and `image_data` a flat list. */
export function singleBody(prompt: Prompt, fields: GenerateFields): Body {
  const images = prompt.images.length === 0 ? [] : [text(',"image_data":'), ...list(prompt.images)];
  return bodyOf([text(`${open(fields)},"input_ids":[${prompt.idsText}]`), ...images, text('}')]);
}

/** Several prompts with the same pictures: `input_ids` and `image_data` hold one list per row. */
export function batchBody(idsTexts: readonly string[], images: readonly Uint8Array[], fields: GenerateFields): Body {
  const rows = idsTexts.map((idsText) => `[${idsText}]`).join(',');
  const head = text(`${open(fields)},"input_ids":[${rows}]`);
  if (images.length === 0) return bodyOf([head, text('}')]);
  const nested = idsTexts.flatMap((_, i) => [...(i === 0 ? [] : [text(',')]), ...list(images)]);
  return bodyOf([head, text(',"image_data":['), ...nested, text(']}')]);
}

/** Ids as text that grows with its history: a context only ever gets longer. */
export class IdsText {
  #ids: number[] = [];
  #text = '';

  of(ids: readonly number[]): string {
    const known = this.#ids.length;
    const extendsKnown = ids.length >= known && this.#ids.every((id, i) => ids[i] === id);
    const added = extendsKnown ? ids.slice(known) : ids;
    if (!extendsKnown) [this.#ids, this.#text] = [[], ''];
    if (added.length > 0) {
      this.#text += (this.#text === '' ? '' : ',') + added.join(',');
      this.#ids.push(...added);
    }
    return this.#text;
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
