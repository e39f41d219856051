// A crop's box, from thousandths of the sides to whole pixels, and the size in which the crop is delivered.
import { ToolInputError } from '../errors.js';

/** Top left and bottom right corner. */
export type Box = readonly [x1: number, y1: number, x2: number, y2: number];

export interface PixelRegion {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
}

/** Shorter crops are enlarged to this side, so that they fill at least one patch of common vision towers. */
const minSidePixels = 28;
/** Qwen's image processors refuse thinner pictures. */
const maxAspect = 200;

/**
 * The pixels that a box touches: left and top rounded down, right and bottom rounded up, clamped to the picture.
 * Throws ToolInputError, in words the model can act on, for a box that holds no pixel or is too thin to look at.
 */
export function pixelRegion(box: Box, imageWidth: number, imageHeight: number): PixelRegion {
  const [x1, y1, x2, y2] = box;
  if (!box.every(Number.isFinite) || !(x1 < x2) || !(y1 < y2)) throw unusable(box, 'The box is empty');
  const left = clamp(Math.floor((x1 * imageWidth) / 1000), imageWidth);
  const top = clamp(Math.floor((y1 * imageHeight) / 1000), imageHeight);
  const width = clamp(Math.ceil((x2 * imageWidth) / 1000), imageWidth) - left;
  const height = clamp(Math.ceil((y2 * imageHeight) / 1000), imageHeight) - top;
  if (width < 1 || height < 1) throw unusable(box, 'The box lies outside the image');
  if (Math.max(width / height, height / width) > maxAspect) {
    throw unusable(box, `The box is too thin (${width} x ${height} pixels, one side may be ${maxAspect} times the other)`);
  }
  return { left, top, width, height };
}

/** The size a region is delivered in: its own, or enlarged with its aspect kept until no side is below the minimum. */
export function enlargedSize({ width, height }: PixelRegion): { width: number; height: number } {
  const factor = Math.max(1, minSidePixels / Math.min(width, height));
  return { width: Math.round(width * factor), height: Math.round(height * factor) };
}

function unusable(box: Box, summary: string): ToolInputError {
  return new ToolInputError(summary, {
    expected: 'bbox_2d = [x1, y1, x2, y2] with 0 <= x1 < x2 <= 1000 and 0 <= y1 < y2 <= 1000',
    found: `[${box.join(', ')}]`,
  });
}

function clamp(value: number, limit: number): number {
  return Math.min(Math.max(value, 0), limit);
}
