// Resized 8-bit pixels → the vision tower's rows of normalised floats, patch by patch in merge order.
import type { PixelConfig } from './checkpoint-config.js';

export interface PatchGrid {
  /** Patches per column and per row of the picture. */
  readonly rows: number;
  readonly columns: number;
  /** [rows · columns in merge order][3 channels][patchSize][patchSize]. */
  readonly pixels: Float32Array;
}

/** `rgb` holds height x width x 3 bytes; both sides are multiples of patchSize · mergeSize. */
export function toPatches(rgb: Uint8Array, width: number, height: number, config: PixelConfig): PatchGrid {
  const { patchSize, mergeSize } = config;
  const [rows, columns] = [height / patchSize, width / patchSize];
  const levels = [0, 1, 2].map((channel) => normalisedLevels(config, channel));
  const pixels = new Float32Array(width * height * 3);
  let at = 0;
  const writePatch = (top: number, left: number): void => {
    for (const [channel, level] of levels.entries()) {
      for (let y = top; y < top + patchSize; y++) {
        for (let x = left; x < left + patchSize; x++) pixels[at++] = level[rgb[(y * width + x) * 3 + channel] ?? 0] ?? 0;
      }
    }
  };
  const block = patchSize * mergeSize;
  for (let top = 0; top < height; top += block) {
    for (let left = 0; left < width; left += block) {
      for (let y = top; y < top + block; y += patchSize) {
        for (let x = left; x < left + block; x += patchSize) writePatch(y, x);
      }
    }
  }
  return { rows, columns, pixels };
}

/** The 256 possible values of one channel: scaled in double, then mean and deviation in float32, as the reference rounds. */
function normalisedLevels(config: PixelConfig, channel: number): Float32Array {
  const mean = Math.fround(config.mean[channel] ?? 0);
  const std = Math.fround(config.std[channel] ?? 1);
  return Float32Array.from({ length: 256 }, (_, level) => {
    const scaled = Math.fround(level * config.rescaleFactor);
    return Math.fround(scaled - mean) / std;
  });
}
