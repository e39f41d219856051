// Pictures at the edge: from encoded bytes to an Image with a name (its hash), a checked type and upright pixels.
import { createHash } from 'node:crypto';
import sharp, { type Metadata } from 'sharp';
import { DataError } from '../errors.js';
import type { Image } from '../types.js';
import type { Size } from './geometry.js';

/** Larger pictures are refused before they are decoded. */
const MOST_PIXELS = 100_000_000;

export interface RgbPixels extends Size {
  /** height x width x 3 bytes. */
  readonly rgb: Uint8Array;
}

/**
 * Reads the type from the bytes themselves and the size from the header. A picture that its EXIF data turns is turned once,
 * here, and re-encoded as PNG; all others keep their bytes. `where` names the source in errors.
 * Throws a DataError when the bytes are no picture we can decode, or one beyond the pixel limit.
 */
export async function loadImage(bytes: Uint8Array, where = 'image'): Promise<Image> {
  const mediaType = mediaTypeOf(bytes);
  if (mediaType === null) {
    throw new DataError('not an image', {
      where,
      expected: 'PNG, JPEG, WebP or GIF',
      found: `${bytes.length} bytes starting ${startOf(bytes)}`,
    });
  }
  const metadata = await attempt(where, () => sharp(bytes, { limitInputPixels: false }).metadata());
  refuseHuge(metadata, where);
  if (metadata.orientation === undefined || metadata.orientation <= 1) {
    return toImage(bytes, mediaType, metadata);
  }
  const upright = await attempt(where, () => sharp(bytes).autoOrient().png().toBuffer({ resolveWithObject: true }));
  return toImage(upright.data, 'image/png', upright.info);
}

/** All pixels as 8-bit RGB: an alpha channel is dropped and grey is tripled, as Pillow's convert("RGB") does. */
export async function decodeRgb(bytes: Uint8Array, where = 'image'): Promise<RgbPixels> {
  const { data, info } = await attempt(where, () =>
    sharp(bytes, { limitInputPixels: MOST_PIXELS })
      .toColourspace('srgb')
      .removeAlpha()
      .raw()
      .toBuffer({ resolveWithObject: true }),
  );
  const { width, height, channels } = info;
  if (channels === 3) return { rgb: data, width, height };
  if (channels === 1)
    return { rgb: Uint8Array.from({ length: 3 * data.length }, (_, i) => data[Math.trunc(i / 3)] ?? 0), width, height };
  throw new DataError('unexpected pixel format', { where, expected: '1 or 3 channels', found: `${channels}` });
}

/** The MIME type that the first bytes announce, or null. */
export function mediaTypeOf(bytes: Uint8Array): string | null {
  const ascii = (start: number, end: number) => String.fromCharCode(...bytes.subarray(start, end));
  if (ascii(0, 8) === '\x89PNG\r\n\x1a\n') return 'image/png';
  if (ascii(0, 3) === '\xff\xd8\xff') return 'image/jpeg';
  if (ascii(0, 4) === 'RIFF' && ascii(8, 12) === 'WEBP') return 'image/webp';
  if (ascii(0, 6) === 'GIF87a' || ascii(0, 6) === 'GIF89a') return 'image/gif';
  return null;
}

function toImage(bytes: Uint8Array, mediaType: string, { width, height }: Size): Image {
  return { sha256: createHash('sha256').update(bytes).digest('hex'), bytes, mediaType, width, height };
}

function refuseHuge({ width, height }: Metadata, where: string): void {
  if (width * height > MOST_PIXELS) {
    throw new DataError('the image is too large', {
      where,
      expected: `at most ${MOST_PIXELS} pixels`,
      found: `${width}x${height}`,
      remedy: 'Scale it down first',
    });
  }
}

async function attempt<T>(where: string, decode: () => Promise<T>): Promise<T> {
  try {
    return await decode();
  } catch (cause) {
    const found = cause instanceof Error ? cause.message : String(cause);
    throw new DataError('the image cannot be decoded', { where, found, remedy: 'Replace or remove the file', cause });
  }
}

function startOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.subarray(0, 8)).toString('hex');
}
