import { describe, expect, it } from 'vitest';
import { fromFractions, fromResizedPixels, toThousandths } from '../../src/tools/coordinates.js';
import type { ImageGeometry } from '../../src/types.js';

const geometry: ImageGeometry = { patchSize: 16, mergeSize: 2, minPixels: 65_536, maxPixels: 1_048_576 };

describe('coordinates of agent formats', () => {
  it('stay what they are in thousandths', () => {
    expect(toThousandths([1, 2, 3, 4], 'thousandths', { width: 10, height: 10 })).toEqual([1, 2, 3, 4]);
  });

  it('are scaled from fractions of the sides', () => {
    expect(fromFractions([0.25, 0, 0.5, 1])).toEqual([250, 0, 500, 1000]);
    expect(toThousandths([0, 0.5, 1, 1], 'fractions', { width: 10, height: 10 })).toEqual([0, 500, 1000, 1000]);
  });

  it('are measured in the resized picture, not in the original', () => {
    expect(fromResizedPixels([64, 32, 128, 128], { width: 256, height: 128 })).toEqual([250, 250, 500, 1000]);
    // 4000 x 3000 becomes 1152 x 864 under a limit of 1 Mpx: the lower right quarter of it is that of the original.
    expect(toThousandths([576, 432, 1152, 864], { pixelsOf: geometry }, { width: 4000, height: 3000 })).toEqual([
      500, 500, 1000, 1000,
    ]);
  });
});
