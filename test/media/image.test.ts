// Loading pictures: types by their bytes, orientation applied once, pixels as Pillow's convert("RGB") gives them.
import sharp from 'sharp';
import { describe, expect, it } from 'vitest';
import { DataError } from '../../src/errors.js';
import { decodeRgb, loadImage, mediaTypeOf } from '../../src/media/image.js';

/** Two pixels, red and blue, side by side. */
const twoPixels = sharp(Uint8Array.of(255, 0, 0, 0, 0, 255), { raw: { width: 2, height: 1, channels: 3 } });

describe('loadImage', () => {
  it('keeps upright pictures byte for byte and names them by hash', async () => {
    const bytes = await twoPixels.clone().png().toBuffer();
    const image = await loadImage(bytes);
    expect(image).toMatchObject({ mediaType: 'image/png', width: 2, height: 1, sha256: expect.stringMatching(/^[0-9a-f]{64}$/) });
    expect(image.bytes).toBe(bytes);
    expect((await loadImage(bytes)).sha256).toBe(image.sha256);
  });

  it('turns a picture that its EXIF data turns, and then only', async () => {
    const turned = await twoPixels
      .clone()
      .withMetadata({ orientation: 6 })
      .jpeg({ quality: 100, chromaSubsampling: '4:4:4' })
      .toBuffer();
    const image = await loadImage(turned);
    expect(image).toMatchObject({ mediaType: 'image/png', width: 1, height: 2 });
    const { rgb } = await decodeRgb(image.bytes);
    expect(rgb[0]).toBeGreaterThan(rgb[2] ?? 0);
    expect(rgb[5]).toBeGreaterThan(rgb[3] ?? 0);
    const again = await loadImage(image.bytes);
    expect(again.sha256).toBe(image.sha256);
  });

  it.each(['png', 'jpeg', 'webp', 'gif'] as const)('knows %s by its bytes', async (format) => {
    expect((await loadImage(await twoPixels.clone().toFormat(format).toBuffer())).mediaType).toBe(`image/${format}`);
  });

  it.each([
    [
      'text',
      Buffer.from('no picture'),
      /photo\.png: not an image; expected PNG, JPEG, WebP or GIF, found 10 bytes starting 6e6f20/,
    ],
    ['nothing', Buffer.alloc(0), /not an image/],
    [
      'a PNG that is cut off in its header',
      Buffer.from('89504e470d0a1a0a0000', 'hex'),
      /photo\.png: the image cannot be decoded/,
    ],
  ])('refuses %s', async (_name, bytes, message) => {
    const error = await loadImage(bytes, 'photo.png').catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(DataError);
    expect((error as Error).message).toMatch(message);
  });

  it('refuses too many pixels before decoding one', async () => {
    const bytes = await twoPixels.clone().png().toBuffer();
    bytes.writeUInt32BE(20_000, 16);
    bytes.writeUInt32BE(20_000, 20);
    bytes.writeUInt32BE(crc32(bytes.subarray(12, 29)), 29);
    await expect(loadImage(bytes)).rejects.toThrow(/too large; expected at most 100000000 pixels, found 20000x20000/);
  });
});

describe('decodeRgb', () => {
  it('drops alpha without blending', async () => {
    const bytes = await sharp(Uint8Array.of(200, 100, 50, 0), { raw: { width: 1, height: 1, channels: 4 } })
      .png()
      .toBuffer();
    expect([...(await decodeRgb(bytes)).rgb]).toEqual([200, 100, 50]);
  });

  it('triples grey', async () => {
    const bytes = await sharp(Uint8Array.of(10, 250), { raw: { width: 2, height: 1, channels: 1 } })
      .toColourspace('b-w')
      .png()
      .toBuffer();
    expect([...(await decodeRgb(bytes)).rgb]).toEqual([10, 10, 10, 250, 250, 250]);
  });

  it('refuses a picture whose pixels are missing', async () => {
    const random = Uint8Array.from({ length: 64 * 64 * 3 }, (_, i) => (i * 7919) % 251);
    const bytes = await sharp(random, { raw: { width: 64, height: 64, channels: 3 } })
      .png()
      .toBuffer();
    await expect(decodeRgb(bytes.subarray(0, 300), 'cut.png')).rejects.toThrow(/cut\.png: the image cannot be decoded/);
  });
});

describe('mediaTypeOf', () => {
  it('is null for what is no picture', () => {
    expect(mediaTypeOf(Buffer.from('%PDF-1.7'))).toBeNull();
  });
});

/** The checksum that PNG puts behind each chunk. */
function crc32(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return ~crc >>> 0;
}
