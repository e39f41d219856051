import { createHash } from 'node:crypto';
import sharp from 'sharp';
import { describe, expect, it } from 'vitest';
import { ToolError, ToolInputError } from '../../src/errors.js';
import { enlargedSize, pixelRegion } from '../../src/tools/box.js';
import { createCrop } from '../../src/tools/crop.js';
import type { Image } from '../../src/types.js';

const crop = createCrop();

describe('the pixels of a box', () => {
  it('rounds outwards, so that a touched pixel is kept', () => {
    expect(pixelRegion([250, 500, 501, 750.5], 400, 200)).toEqual({ left: 100, top: 100, width: 101, height: 51 });
  });

  it('takes exactly one cell of a 4 x 4 grid', () => {
    expect(pixelRegion([250, 500, 500, 750], 384, 384)).toEqual({ left: 96, top: 192, width: 96, height: 96 });
  });

  it('keeps rounding errors of the division out of whole pixels', () => {
    // 0.29 * 100 is 28.999999999999996 in floating point: dividing first would lose a column.
    expect(pixelRegion([290, 0, 580, 1000], 100, 100)).toMatchObject({ left: 29, width: 29 });
  });

  it('clamps to the picture', () => {
    expect(pixelRegion([-20, 900, 1200, 1400], 100, 50)).toEqual({ left: 0, top: 45, width: 100, height: 5 });
  });

  it('keeps at least one pixel of a small but valid box', () => {
    expect(pixelRegion([1, 1, 2, 2], 10, 10)).toEqual({ left: 0, top: 0, width: 1, height: 1 });
  });

  it.each([
    [[500, 100, 500, 200], 'The box is empty'],
    [[100, 300, 200, 200], 'The box is empty'],
    [[Number.NaN, 0, 10, 10], 'The box is empty'],
    [[1000, 0, 1100, 500], 'The box lies outside the image'],
    [[0, -50, 500, -10], 'The box lies outside the image'],
    [[0, 500, 1000, 500.1], 'The box is too thin (1000 x 1 pixels'],
  ] as const)('refuses %j with a message for the model', (box, message) => {
    expect(() => pixelRegion(box, 1000, 1000)).toThrow(ToolInputError);
    expect(() => pixelRegion(box, 1000, 1000)).toThrow(message);
    expect(() => pixelRegion(box, 1000, 1000)).toThrow('0 <= x1 < x2 <= 1000');
  });
});

describe('cropping', () => {
  it('returns the very pixels of the full-resolution picture as PNG', async () => {
    const source = await gradient(120, 80);
    const result = await crop.crop(source, [250, 250, 750, 1000]);
    expect(result).toMatchObject({ mediaType: 'image/png', width: 60, height: 60 });
    expect(result.sha256).toBe(createHash('sha256').update(result.bytes).digest('hex'));
    const { data, info } = await sharp(result.bytes).raw().toBuffer({ resolveWithObject: true });
    expect([info.width, info.height, info.channels, info.format]).toEqual([60, 60, 3, 'raw']);
    // Pixel (x, y) of the gradient is (x, y, x + y).
    expect([...data.subarray(0, 3)]).toEqual([30, 20, 50]);
    expect([...data.subarray(-3)]).toEqual([89, 79, 168]);
  });

  it('enlarges a short side to 28 pixels and keeps the aspect', async () => {
    const result = await crop.crop(await gradient(200, 100), [0, 0, 100, 100]);
    expect(enlargedSize({ left: 0, top: 0, width: 20, height: 10 })).toEqual({ width: 56, height: 28 });
    expect(result).toMatchObject({ width: 56, height: 28 });
    expect(await sharp(result.bytes).metadata()).toMatchObject({ width: 56, height: 28 });
  });

  it('gives the same bytes for the same box', async () => {
    const source = await gradient(120, 80);
    const [first, second] = [await crop.crop(source, [0, 0, 300, 300]), await crop.crop(source, [0, 0, 300, 300])];
    expect(Buffer.compare(first.bytes, second.bytes)).toBe(0);
  });

  it('reports an unreadable picture as a failure of the tool', async () => {
    const broken: Image = { sha256: 'ab12', bytes: Buffer.from('no picture'), mediaType: 'image/png', width: 9, height: 9 };
    await expect(crop.crop(broken, [0, 0, 500, 500])).rejects.toThrow(ToolError);
    await expect(crop.crop(broken, [0, 0, 500, 500])).rejects.toThrow('image ab12: the picture cannot be cropped');
  });

  it('reads fractions of the sides where the dialect does', async () => {
    const source = await gradient(120, 80);
    const fractions = await createCrop({ coordinates: 'fractions' }).crop(source, [0.25, 0.25, 0.75, 1]);
    expect(fractions.sha256).toBe((await crop.crop(source, [250, 250, 750, 1000])).sha256);
  });

  it('cuts from the processed picture on request, and reads its pixels', async () => {
    const geometry = { patchSize: 16, mergeSize: 2, minPixels: 1_024, maxPixels: 4_096 };
    const source = await gradient(120, 120);
    const result = await createCrop({ coordinates: { pixelsOf: geometry }, processedBy: geometry }).crop(source, [0, 0, 32, 64]);
    expect(result).toMatchObject({ width: 32, height: 64 });
    const { data } = await sharp(result.bytes).raw().toBuffer({ resolveWithObject: true });
    // 120 pixels became 64: the pixel at (31, 63) shows what lies around (59, 119) of the gradient.
    expect(data.at(-3)).toBeGreaterThan(56);
    expect(data.at(-3)).toBeLessThan(61);
  });

  it('gives the same bytes from the cache as without it, for every kind of picture', async () => {
    const source = await gradient(120, 80);
    const cold = createCrop({ cacheBytes: 0 });
    const kinds = [sharp(source.bytes).jpeg(), sharp(source.bytes).greyscale().png(), sharp(source.bytes).ensureAlpha(0.5).png()];
    for (const kind of kinds) {
      const bytes = await kind.toBuffer();
      const image: Image = {
        sha256: createHash('sha256').update(bytes).digest('hex'),
        bytes,
        mediaType: '',
        width: 120,
        height: 80,
      };
      await crop.crop(image, [0, 0, 1000, 1000]);
      const [cached, direct] = [await crop.crop(image, [100, 100, 600, 700]), await cold.crop(image, [100, 100, 600, 700])];
      expect(cached.sha256).toBe(direct.sha256);
      const expected = await sharp(bytes)
        .extract({ left: 12, top: 8, width: 60, height: 48 })
        .toColourspace('srgb')
        .raw()
        .toBuffer();
      expect(Buffer.compare(await sharp(cached.bytes).raw().toBuffer(), expected)).toBe(0);
    }
  });

  it('stops when aborted', async () => {
    await expect(crop.crop(await gradient(9, 9), [0, 0, 500, 500], AbortSignal.abort())).rejects.toThrow('abort');
  });
});

async function gradient(width: number, height: number): Promise<Image> {
  const pixels = Buffer.alloc(width * height * 3);
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) pixels.set([x, y, x + y], (y * width + x) * 3);
  }
  const bytes = await sharp(pixels, { raw: { width, height, channels: 3 } })
    .png()
    .toBuffer();
  return { sha256: createHash('sha256').update(bytes).digest('hex'), bytes, mediaType: 'image/png', width, height };
}
