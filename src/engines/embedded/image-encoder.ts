// One picture from encoded bytes to features: decode, resize as the checkpoint was trained with, run the vision tower.
import { EngineError } from '../../errors.js';
import { resizedSize } from '../../media/geometry.js';
import { decodeRgb } from '../../media/image.js';
import { resizeBicubic } from '../../media/resize.js';
import type { Image } from '../../types.js';
import type { PixelConfig } from './checkpoint-config.js';
import { type PatchGrid, toPatches } from './pixel-values.js';
import type { ImageFeatures, VisionTower } from './vision-tower.js';

export async function encodeImage(image: Image, tower: VisionTower, config: PixelConfig): Promise<ImageFeatures> {
  return tower.encode(await pixelValues(image, config));
}

/** The vision tower's input; throws a DataError when the picture cannot be decoded. */
export async function pixelValues(image: Image, config: PixelConfig): Promise<PatchGrid> {
  const where = `image ${image.sha256.slice(0, 12)}`;
  const decoded = await decodeRgb(image.bytes, where);
  if (decoded.width !== image.width || decoded.height !== image.height) {
    throw new EngineError('an image is not of the size its context claims', {
      where,
      expected: `${image.width}x${image.height}`,
      found: `${decoded.width}x${decoded.height}`,
    });
  }
  const size = resizedSize(decoded, config);
  return toPatches(resizeBicubic(decoded.rgb, decoded, size), size.width, size.height, config);
}
