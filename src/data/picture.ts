// A picture of a source, made fit for the prepared folder: the original bytes where the evaluation can read them.
import sharp from 'sharp';
import { loadImage, mediaTypeOf } from '../media/image.js';
import { sha256Of } from './hub/digest.js';

export type Picture =
  | { readonly kind: 'picture'; readonly name: string; readonly bytes: Uint8Array; readonly converted: boolean }
  | { readonly kind: 'undecodable'; readonly reason: string };

const extensions: Readonly<Record<string, string>> = {
  'image/jpeg': 'jpg',
  'image/png': 'png',
  'image/webp': 'webp',
  'image/gif': 'gif',
};

/**
 * Decodes the picture once, so that damage is found here and not in the middle of an evaluation. The type is read from the bytes; a
 * format that only sharp knows (AVIF, TIFF) is converted to PNG without loss.
 */
export async function preparePicture(bytes: Uint8Array): Promise<Picture> {
  try {
    const known = mediaTypeOf(bytes) !== null;
    const kept = known ? bytes : await sharp(bytes).autoOrient().png().toBuffer();
    await loadImage(kept);
    // Every pixel is read, at the smallest size the format allows; warnings are about metadata.
    await sharp(kept, { failOn: 'error' }).resize(8, 8, { fit: 'fill' }).raw().toBuffer();
    const extension = extensions[mediaTypeOf(kept) ?? ''] ?? 'bin';
    return { kind: 'picture', name: `images/${sha256Of(kept)}.${extension}`, bytes: kept, converted: !known };
  } catch (error) {
    return { kind: 'undecodable', reason: error instanceof Error ? error.message : String(error) };
  }
}
