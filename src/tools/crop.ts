// Zooming: cuts a box out of the full-resolution picture, or out of the picture as the model saw it.
import { createHash } from 'node:crypto';
import sharp from 'sharp';
import { ToolError } from '../errors.js';
import { resizedSize } from '../media/geometry.js';
import { decodeRgb } from '../media/image.js';
import { resizeBicubic } from '../media/resize.js';
import type { Crop, Image, ImageGeometry } from '../types.js';
import { enlargedSize, type PixelRegion, pixelRegion } from './box.js';
import { type Coordinates, toThousandths } from './coordinates.js';
import { createPixelCache, type Pixels } from './pixel-cache.js';

export interface CropOptions {
  /** What the boxes that arrive mean; thousandths unless said. */
  readonly coordinates?: Coordinates;
  /** Where given, crops are cut from the picture as this image processor resized it, not from the original. */
  readonly processedBy?: ImageGeometry;
  /** Most bytes of decoded pictures that are kept for further crops; 128 MiB unless said. */
  readonly cacheBytes?: number;
}

const defaultCacheBytes = 128 * 1024 * 1024;

/** Crops losslessly to PNG; the same picture and box always give the same bytes. */
export function createCrop(options: CropOptions = {}): Crop {
  const { coordinates = 'thousandths', processedBy, cacheBytes = defaultCacheBytes } = options;
  const cache = createPixelCache(cacheBytes);
  return {
    async crop(image, box, signal) {
      signal?.throwIfAborted();
      const size = processedBy ? resizedSize(image, processedBy) : image;
      const region = pixelRegion(toThousandths(box, coordinates, image), size.width, size.height);
      const pixels = await cache.get(image.sha256, () => (processedBy ? decodeProcessed(image, processedBy) : decode(image)));
      const bytes = await cut(image, pixels, region);
      signal?.throwIfAborted();
      return {
        sha256: createHash('sha256').update(bytes).digest('hex'),
        bytes,
        mediaType: 'image/png',
        ...enlargedSize(region),
      };
    },
  };
}

function decode(image: Image): Promise<Pixels> {
  return readable(image, async () => {
    const { data, info } = await sharp(image.bytes).toColourspace('srgb').raw().toBuffer({ resolveWithObject: true });
    return { data, width: info.width, height: info.height, channels: info.channels };
  });
}

function decodeProcessed(image: Image, geometry: ImageGeometry): Promise<Pixels> {
  return readable(image, async () => {
    const { rgb, width, height } = await decodeRgb(image.bytes, `image ${image.sha256}`);
    const size = resizedSize(image, geometry);
    return { data: resizeBicubic(rgb, { width, height }, size), ...size, channels: 3 };
  });
}

async function cut(image: Image, { data, width, height, channels }: Pixels, region: PixelRegion): Promise<Uint8Array> {
  const size = enlargedSize(region);
  return readable(image, () => {
    const pixels = sharp(data, { raw: { width, height, channels } }).extract({ ...region });
    const resized = size.width === region.width ? pixels : pixels.resize({ ...size, fit: 'fill', kernel: 'cubic' });
    return resized.png({ compressionLevel: 6, adaptiveFiltering: false, palette: false }).toBuffer();
  });
}

/** A picture that cannot be read is a failure of the tool. */
async function readable<T>(image: Image, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    throw new ToolError('the picture cannot be cropped', {
      where: `image ${image.sha256}`,
      expected: `a readable picture of ${image.width} x ${image.height} pixels`,
      found: cause instanceof Error ? cause.message : String(cause),
      cause,
    });
  }
}
