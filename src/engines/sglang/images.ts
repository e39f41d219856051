// Pictures as the server reads them: PNG, made once per picture. JPEG would be decoded by other code on a GPU server
// (nvJPEG), which changes pixels and makes some releases re-tokenise the prompt.
import { randomUUID } from 'node:crypto';
import { mkdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import sharp from 'sharp';
import { DataError } from '../../errors.js';
import type { Image } from '../../types.js';

/**
 * `data` works everywhere. `path` and `url` spare the upload when the server can read `folder`: by its path, or
 * fetched from `baseUrl` (which must serve that folder; SGLang gives a fetch three seconds).
 */
export type ImageTransport =
  | { readonly kind: 'data' }
  | { readonly kind: 'path'; readonly folder: string }
  | { readonly kind: 'url'; readonly folder: string; readonly baseUrl: string };

export interface ImageEncoder {
  /** JSON strings (quotes included) for `image_data`, in order. */
  encode(images: readonly Image[]): Promise<Uint8Array[]>;
}

/** Keeps the most recently used pictures up to `cacheBytes` in all; a picture in use is never encoded twice at a time. */
export function createImageEncoder(transport: ImageTransport, cacheBytes: number): ImageEncoder {
  const cache = new Map<string, Promise<Uint8Array>>();
  const sizes = new Map<string, number>();
  let total = 0;

  const drop = (key: string): void => {
    cache.delete(key);
    total -= sizes.get(key) ?? 0;
    sizes.delete(key);
  };
  const add = (image: Image): Promise<Uint8Array> => {
    const key = image.sha256;
    const known = cache.get(key);
    if (known) {
      const size = sizes.get(key);
      if (size !== undefined && sizes.delete(key)) sizes.set(key, size); // now the most recently used
      return known;
    }
    const made = reference(image, transport);
    cache.set(key, made);
    made.then(
      (bytes) => {
        if (cache.get(key) !== made) return;
        sizes.set(key, bytes.byteLength);
        total += bytes.byteLength;
        for (const oldest of sizes.keys()) {
          if (total <= cacheBytes) break;
          if (oldest !== key) drop(oldest);
        }
      },
      () => cache.delete(key),
    );
    return made;
  };
  return { encode: (images) => Promise.all(images.map(add)) };
}

async function reference(image: Image, transport: ImageTransport): Promise<Uint8Array> {
  const png = await toPng(image);
  if (transport.kind === 'data') return quotedDataUri(png);
  const name = `${image.sha256}.png`;
  await mkdir(transport.folder, { recursive: true });
  const temporary = join(transport.folder, `.${name}.${randomUUID()}`);
  await writeFile(temporary, png);
  await rename(temporary, join(transport.folder, name));
  const place = transport.kind === 'path' ? join(transport.folder, name) : `${transport.baseUrl.replace(/\/+$/, '')}/${name}`;
  return Buffer.from(JSON.stringify(place));
}

/** 8-bit RGB PNG; a picture that already is one keeps its bytes. */
export async function toPng(image: Image): Promise<Uint8Array> {
  if (isPlainPng(image.bytes)) return image.bytes;
  try {
    // Fast compression: the bytes travel once per row, mostly within a machine.
    return await sharp(image.bytes).toColourspace('srgb').removeAlpha().png({ compressionLevel: 3, palette: false }).toBuffer();
  } catch (cause) {
    throw new DataError('cannot decode the picture', {
      where: `image ${image.sha256.slice(0, 12)}`,
      found: image.mediaType,
      cause,
    });
  }
}

/** Bit depth 8 and colour type 2 (RGB) in the IHDR chunk. */
function isPlainPng(bytes: Uint8Array): boolean {
  const signature = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a];
  return signature.every((byte, i) => bytes[i] === byte) && bytes[24] === 8 && bytes[25] === 2;
}

/** Built in bytes: a string of a large picture would live in the small JavaScript heap. */
function quotedDataUri(png: Uint8Array): Uint8Array {
  const head = '"data:image/png;base64,';
  const source = Buffer.from(png.buffer, png.byteOffset, png.byteLength);
  const length = Math.ceil(source.byteLength / 3) * 4;
  const uri = Buffer.allocUnsafe(head.length + length + 1);
  uri.write(head, 0, 'latin1');
  const step = 3 * 64 * 1024; // a multiple of three, so that the pieces join without padding
  let at = head.length;
  for (let from = 0; from < source.byteLength; from += step) {
    at += uri.write(source.toString('base64', from, Math.min(from + step, source.byteLength)), at, 'latin1');
  }
  uri.write('"', at, 'latin1');
  return uri;
}
