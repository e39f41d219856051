// How large a picture the model sees: sides become multiples of one image token, the area stays within limits.
import { DataError } from '../errors.js';
import type { ImageGeometry } from '../types.js';

const GREATEST_ASPECT = 200;

export interface Size {
  readonly width: number;
  readonly height: number;
}

/** The resized picture, as Qwen2-VL's and Qwen3-VL's image processor computes it. Throws a DataError beyond an aspect of 200. */
export function resizedSize({ width, height }: Size, geometry: ImageGeometry): Size {
  const aspect = Math.max(width, height) / Math.min(width, height);
  if (aspect > GREATEST_ASPECT) {
    throw new DataError('the image is too elongated', {
      expected: `an aspect ratio of at most ${GREATEST_ASPECT}`,
      found: `${width}x${height}`,
      remedy: 'Crop the image',
    });
  }
  const unit = tokenSide(geometry);
  const rounded = { width: roundHalfEven(width / unit) * unit, height: roundHalfEven(height / unit) * unit };
  if (rounded.width * rounded.height > geometry.maxPixels) {
    const shrink = Math.sqrt((height * width) / geometry.maxPixels);
    const scaled = (side: number) => Math.max(unit, Math.floor(side / shrink / unit) * unit);
    return { width: scaled(width), height: scaled(height) };
  }
  if (rounded.width * rounded.height < geometry.minPixels) {
    const grow = Math.sqrt(geometry.minPixels / (height * width));
    const scaled = (side: number) => Math.ceil((side * grow) / unit) * unit;
    return { width: scaled(width), height: scaled(height) };
  }
  return rounded;
}

/** Image tokens per row and per column. */
export function imageTokenGrid(width: number, height: number, geometry: ImageGeometry): { rows: number; columns: number } {
  const resized = resizedSize({ width, height }, geometry);
  const unit = tokenSide(geometry);
  return { rows: resized.height / unit, columns: resized.width / unit };
}

/** Expanded positions that one image takes in a context. */
export function imageTokenCount(width: number, height: number, geometry: ImageGeometry): number {
  const { rows, columns } = imageTokenGrid(width, height, geometry);
  return rows * columns;
}

function tokenSide(geometry: ImageGeometry): number {
  return geometry.patchSize * geometry.mergeSize;
}

/** Python's round: halves go to the even neighbour. */
function roundHalfEven(value: number): number {
  const floor = Math.floor(value);
  const fraction = value - floor;
  if (fraction !== 0.5) return Math.round(value);
  return floor % 2 === 0 ? floor : floor + 1;
}
