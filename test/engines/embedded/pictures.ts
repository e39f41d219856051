// Seeded pictures, and contexts that show them.
import sharp from 'sharp';
import { imageTokenCount } from '../../../src/media/geometry.js';
import { loadImage } from '../../../src/media/image.js';
import { createRandom } from '../../../src/random.js';
import type { Image, TokenContext } from '../../../src/types.js';
import { imageTokenId, randomIds } from './tiny-checkpoint.js';

const geometry = { patchSize: 16, mergeSize: 2, minPixels: 96 * 96, maxPixels: 96 * 96 };

export async function noisePicture(width: number, height: number, seed: number): Promise<Image> {
  const random = createRandom(seed);
  const rgb = Uint8Array.from({ length: width * height * 3 }, () => random() * 256);
  return loadImage(
    await sharp(rgb, { raw: { width, height, channels: 3 } })
      .png()
      .toBuffer(),
  );
}

/** Ids, then each picture followed by more ids. */
export async function pictureContext(
  trajectory: string,
  sizes: readonly (readonly [number, number])[],
  seed = 1,
): Promise<TokenContext> {
  const images = await Promise.all(sizes.map(([width, height], index) => noisePicture(width, height, seed + index)));
  const ids = [...randomIds(8, seed), ...images.flatMap((_, index) => [imageTokenId, ...randomIds(9, seed + 10 + index)])];
  const tokens = images.reduce((sum, { width, height }) => sum + imageTokenCount(width, height, geometry), 0);
  return { trajectory, ids, images, length: ids.length - images.length + tokens };
}
