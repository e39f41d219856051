// Seeded test pictures: a few coloured rectangles on a coloured ground, all different.
import { createHash } from 'node:crypto';
import sharp from 'sharp';
import { createRandom } from '../../../src/random.js';
import type { Image } from '../../../src/types.js';

export async function randomPicture(seed: number, side: number): Promise<Image> {
  const random = createRandom(seed);
  const colour = (): number[] => Array.from({ length: 3 }, () => Math.floor(random() * 256));
  const pixels = Buffer.alloc(side * side * 3, Buffer.from(colour()));
  for (let shape = 0; shape < 12; shape++) {
    const [left, top] = [Math.floor(random() * side * 0.8), Math.floor(random() * side * 0.8)];
    const [width, height] = [Math.floor((0.1 + random() * 0.3) * side), Math.floor((0.1 + random() * 0.3) * side)];
    const paint = colour();
    for (let y = top; y < Math.min(side, top + height); y++) {
      for (let x = left; x < Math.min(side, left + width); x++) pixels.set(paint, (y * side + x) * 3);
    }
  }
  const bytes = await sharp(pixels, { raw: { width: side, height: side, channels: 3 } })
    .png()
    .toBuffer();
  return toImage(bytes, side, side);
}

export function toImage(bytes: Uint8Array, width: number, height: number): Image {
  return { sha256: createHash('sha256').update(bytes).digest('hex'), bytes, mediaType: 'image/png', width, height };
}
