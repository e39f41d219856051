import sharp from 'sharp';
import { describe, expect, it } from 'vitest';
import { cosine, describePicture, descriptorLength, windows } from '../../../src/tools/image-search/descriptor.js';
import { randomPicture, toImage } from './pictures.js';

describe('picture descriptors', () => {
  it('cover the picture by 26 windows of whole cells, the whole picture first', () => {
    expect(windows).toHaveLength(26);
    expect(windows[0]).toEqual({ left: 0, top: 0, side: 96 });
    for (const { left, top, side } of windows) {
      expect(side % 12).toBe(0);
      expect(Math.max(left, top) + side).toBeLessThanOrEqual(96);
    }
    expect(new Set(windows.map((window) => JSON.stringify(window))).size).toBe(26);
  });

  it('have length 1 and mean 0 in each window', async () => {
    const descriptors = await describePicture(await randomPicture(5, 192));
    for (let i = 0; i < windows.length; i++) {
      expect(cosine(descriptors, i * descriptorLength, descriptors, i * descriptorLength)).toBeCloseTo(1, 5);
      const values = descriptors.slice(i * descriptorLength, (i + 1) * descriptorLength);
      expect(values.reduce((sum, value) => sum + value, 0)).toBeCloseTo(0, 4);
    }
  });

  it('of a window equal those of the cut picture', async () => {
    const image = await randomPicture(9, 96);
    const descriptors = await describePicture(image);
    const { left, top, side } = windows[17] ?? { left: 0, top: 0, side: 0 };
    const cut = await sharp(image.bytes)
      .extract({ left, top, width: side, height: side })
      .resize(96, 96, { kernel: 'nearest' })
      .png()
      .toBuffer();
    const alone = await describePicture(toImage(cut, 96, 96), 1);
    expect(cosine(descriptors, 17 * descriptorLength, alone, 0)).toBeCloseTo(1, 5);
  });

  it('are exact for a picture whose cells are known', async () => {
    // Left half black, right half (240, 240, 0): the mean is 80, the deviations are -80 and, for red and green on the right, 160.
    // In units of 80 the squares sum to 72 cells * 3 + 72 cells * (4 + 4 + 1) = 864.
    const pixels = Buffer.alloc(96 * 96 * 3);
    for (let i = 0; i < 96 * 96; i++) if (i % 96 >= 48) pixels.set([240, 240, 0], i * 3);
    const bytes = await sharp(pixels, { raw: { width: 96, height: 96, channels: 3 } })
      .png()
      .toBuffer();
    const descriptor = await describePicture(toImage(bytes, 96, 96), 1);
    descriptor.forEach((value, i) => {
      const bright = i % 3 < 2 && Math.floor(i / 3) % 12 >= 6;
      expect(value).toBeCloseTo((bright ? 2 : -1) / Math.sqrt(864), 6);
    });
  });

  it('of a grey picture are zero', async () => {
    const flat = await sharp({ create: { width: 33, height: 20, channels: 4, background: '#77777780' } })
      .png()
      .toBuffer();
    expect((await describePicture(toImage(flat, 33, 20))).every((value) => value === 0)).toBe(true);
  });
});
