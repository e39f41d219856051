// A picture as the judge sees it: the original where it is small enough, else scaled down to a JPEG.
import sharp from 'sharp';
import { JudgeError } from '../errors.js';
import type { Image } from '../types.js';
import type { ChatPart } from './llm-client.js';

export const judgeImagePixels = 1024 * 1024;

/** Throws JudgeError for a picture that cannot be decoded. */
export async function imagePart(image: Image): Promise<ChatPart> {
  const { bytes, mediaType } = image.width * image.height <= judgeImagePixels ? image : await shrink(image);
  return { type: 'image_url', image_url: { url: `data:${mediaType};base64,${Buffer.from(bytes).toString('base64')}` } };
}

async function shrink({ bytes, width, height, sha256 }: Image): Promise<{ bytes: Uint8Array; mediaType: string }> {
  const factor = Math.sqrt(judgeImagePixels / (width * height));
  try {
    const scaled = sharp(bytes).resize({ width: Math.max(1, Math.floor(width * factor)) });
    return { bytes: await scaled.flatten({ background: 'white' }).jpeg({ quality: 85 }).toBuffer(), mediaType: 'image/jpeg' };
  } catch (cause) {
    throw new JudgeError('the picture cannot be shown to the judge', { where: `image ${sha256}`, cause });
  }
}
