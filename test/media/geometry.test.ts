// Image sizes and token counts as Qwen's image processor computes them; the expected sizes come from its own smart_resize.
import { describe, expect, it } from 'vitest';
import { imageTokenCount, imageTokenGrid, resizedSize } from '../../src/media/geometry.js';

const published = { patchSize: 16, mergeSize: 2, minPixels: 65_536, maxPixels: 8_294_400 };
const micro = { patchSize: 16, mergeSize: 2, minPixels: 16_384, maxPixels: 16_384 };

describe('resizedSize', () => {
  it.each([
    // [width, height], [resized width, resized height]
    [
      [1920, 1080],
      [1920, 1088],
    ],
    [
      [640, 480],
      [640, 480],
    ],
    [
      [4000, 3000],
      [3296, 2464],
    ],
    [
      [100, 100],
      [256, 256],
    ],
    [
      [48, 48],
      [256, 256],
    ],
    [
      [304, 304],
      [320, 320],
    ],
    [
      [272, 272],
      [256, 256],
    ],
    [
      [20, 3900],
      [32, 3904],
    ],
    [
      [1, 200],
      [32, 3648],
    ],
  ] as const)('%j becomes %j', ([width, height], [resizedWidth, resizedHeight]) => {
    expect(resizedSize({ width, height }, published)).toEqual({ width: resizedWidth, height: resizedHeight });
  });

  it('refuses an aspect beyond 200, with the size', () => {
    expect(() => resizedSize({ width: 2001, height: 10 }, published)).toThrow(
      /too elongated; expected an aspect ratio of at most 200, found 2001x10/,
    );
  });
});

describe('image tokens', () => {
  it('are one per 32x32 pixels of the resized picture', () => {
    expect(imageTokenCount(384, 384, micro)).toBe(16);
    expect(imageTokenGrid(231, 97, micro)).toEqual({ rows: 2, columns: 6 });
    expect(imageTokenCount(1920, 1080, published)).toBe(60 * 34);
  });
});
