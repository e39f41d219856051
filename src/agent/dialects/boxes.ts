// Boxes as the formats write them, turned into thousandths of a picture's width and height.
import { resizedSize, type Size } from '../../media/geometry.js';
import type { ImageGeometry } from '../../types.js';

export type Box = readonly [number, number, number, number];

/** A box, or why it is none. */
export type ReadBox = { readonly box: Box; readonly reason: null } | { readonly box: null; readonly reason: string };

/** Four numbers from 0 to `full`, x1 < x2 and y1 < y2, as thousandths. */
export function relativeBox(numbers: readonly number[], full: number): ReadBox {
  const wrong = notABox(numbers) ?? (numbers.some((n) => n < 0 || n > full) ? `box outside 0..${full}` : null);
  return wrong === null ? read(numbers.map((n) => (1000 * n) / full)) : { box: null, reason: wrong };
}

/** Pixels of the picture as the model sees it (resized for its image tokens), cut to the picture as its own harness does. */
export function pixelBox(numbers: readonly number[], pictures: readonly Size[], index: number, geometry: ImageGeometry): ReadBox {
  const picture = pictures[index];
  if (picture === undefined) return { box: null, reason: `picture ${index} of ${pictures.length}` };
  const { width, height } = resizedSize(picture, geometry);
  const within = numbers.map((n, i) => Math.min(Math.max(n, 0), i % 2 === 0 ? width : height));
  const wrong = notABox(within);
  return wrong === null ? read(within.map((n, i) => (1000 * n) / (i % 2 === 0 ? width : height))) : { box: null, reason: wrong };
}

function notABox(numbers: readonly number[]): string | null {
  const [x1 = 0, y1 = 0, x2 = 0, y2 = 0] = numbers;
  if (numbers.length !== 4 || !numbers.every(Number.isFinite)) return 'a box has four finite numbers';
  return x1 < x2 && y1 < y2 ? null : 'a box must have x1 < x2 and y1 < y2';
}

function read(thousandths: readonly number[]): ReadBox {
  return { box: thousandths as unknown as Box, reason: null };
}
