import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import sharp from 'sharp';
import { onTestFinished } from 'vitest';
import { loadImage } from '../../../src/media/image.js';
import type { Image } from '../../../src/types.js';

/** A picture of one colour. */
export async function picture(colour: string, side = 32): Promise<Image> {
  const bytes = await sharp({ create: { width: side, height: side, channels: 3, background: colour } })
    .png()
    .toBuffer();
  return loadImage(bytes);
}

/** Removed when the test ends. */
export async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'ssr-tools-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}
