// Pillow's pictures inside pickles: class, and as its state [info, mode, size, palette, raw pixels].
import sharp from 'sharp';
import { PickleObject, type PickleValue } from './pickle.js';

/** Classes that FVQA's caches name; the last ones stand in `info`, which is not used. */
export const pillowClasses: readonly string[] = [
  'PIL.Image Image',
  'PIL.JpegImagePlugin JpegImageFile',
  'PIL.PngImagePlugin PngImageFile',
  'PIL.WebPImagePlugin WebPImageFile',
  'PIL.GifImagePlugin GifImageFile',
  'PIL.PngImagePlugin iTXt',
  'PIL.TiffImagePlugin IFDRational',
  'fractions Fraction',
  '_codecs encode',
];

const channelsOf: Readonly<Record<string, 1 | 2 | 3 | 4>> = { L: 1, LA: 2, RGB: 3, RGBA: 4 };

/** The picture as PNG, or null where its mode is not one of those that thumbnails have. */
export async function pngOfPillow(value: PickleValue): Promise<Uint8Array | null> {
  if (!(value instanceof PickleObject) || !Array.isArray(value.state)) return null;
  const [, mode, size, palette, data] = value.state;
  const pixels = bytesOf(data);
  if (typeof mode !== 'string' || !Array.isArray(size) || pixels === null) return null;
  const [width, height] = size;
  if (!isSide(width) || !isSide(height)) return null;
  const [raw, channels] = mode === 'P' ? [withPalette(pixels, palette), 3 as const] : [pixels, channelsOf[mode]];
  if (raw === null || channels === undefined || raw.length !== width * height * channels) return null;
  return sharp(raw, { raw: { width, height, channels } }).png().toBuffer();
}

function isSide(value: PickleValue | undefined): value is number {
  return Number.isInteger(value) && (value as number) > 0;
}

/** Protocol 2 has no bytes of its own and writes them as a text to be encoded in Latin-1. */
function bytesOf(value: PickleValue | undefined): Uint8Array | null {
  if (value instanceof Uint8Array) return value;
  if (!(value instanceof PickleObject) || value.className !== '_codecs encode') return null;
  const [text, encoding] = value.args;
  return typeof text === 'string' && /^latin-?1$/.test(String(encoding)) ? Buffer.from(text, 'latin1') : null;
}

function withPalette(indices: Uint8Array, palette: PickleValue | undefined): Uint8Array | null {
  if (!Array.isArray(palette)) return null;
  const rgb = new Uint8Array(indices.length * 3);
  for (const [i, index] of indices.entries()) {
    for (let channel = 0; channel < 3; channel++) rgb[i * 3 + channel] = Number(palette[index * 3 + channel] ?? 0);
  }
  return rgb;
}
