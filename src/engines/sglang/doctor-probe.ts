// What the doctor shows to a server: a short history, candidates of different lengths, and pictures one cannot mistake.
import { createHash } from 'node:crypto';
import sharp from 'sharp';
import { Context } from '../../agent/context.js';
import type { EngineInfo, Image, Tokenizer } from '../../types.js';

export interface Probe {
  readonly candidates: readonly (readonly number[])[];
  /** A history without pictures, of some fifty tokens. */
  text(trajectory: string): Context;
  /** A history that asks about pictures. */
  pictured(trajectory: string, images: readonly Image[]): Context;
}

const VISION = '<|vision_start|><|image_pad|><|vision_end|>';
const SYSTEM = '<|im_start|>system\nYou look at pictures, search, and answer in a few words. Think before you act.<|im_end|>\n';
const QUESTION = '<|im_start|>user\nWhich colour fills the picture, and what would you do to find out more about it?\n';
const END = '<|im_end|>\n<|im_start|>assistant\n';
const CANDIDATES = [
  'I can see the colour in the picture, so I answer now.',
  'The picture is red.',
  'The picture is blue.',
  'I should search for what the picture shows before I say anything about it.',
].map((text) => `<thinking>${text}</thinking>`);

export function createProbe(tokenizer: Tokenizer, info: EngineInfo): Probe {
  const imagePadId = tokenizer.idOf('<|image_pad|>');
  const encode = (text: string) => tokenizer.encode(text);
  const context = (trajectory: string, text: string, images: readonly Image[]) => {
    const made = new Context(trajectory, info.geometry, imagePadId);
    made.append(encode(SYSTEM));
    made.append(encode(text), images);
    return made;
  };
  return {
    candidates: CANDIDATES.map(encode),
    text: (trajectory) => context(trajectory, QUESTION + END, []),
    pictured: (trajectory, images) => context(trajectory, QUESTION + VISION.repeat(images.length) + END, images),
  };
}

export async function square(width: number, height: number, colour: string): Promise<Image> {
  const bytes = await sharp({ create: { width, height, channels: 3, background: colour } })
    .png()
    .toBuffer();
  return { sha256: createHash('sha256').update(bytes).digest('hex'), bytes, mediaType: 'image/png', width, height };
}

/** Largest difference of two scorings, in nats per token. */
export function distance(a: readonly (readonly number[])[], b: readonly (readonly number[])[]): number {
  return Math.max(...a.flatMap((row, i) => row.map((value, j) => Math.abs(value - (b[i]?.[j] ?? Number.POSITIVE_INFINITY)))));
}

/** Largest difference of two scorings' mean log-probs, in nats: the unit of margins. */
export function scoreDistance(a: readonly (readonly number[])[], b: readonly (readonly number[])[]): number {
  const means = (rows: readonly (readonly number[])[]) =>
    rows.map((row) => row.reduce((sum, value) => sum + value, 0) / row.length);
  const [left, right] = [means(a), means(b)];
  return Math.max(...left.map((value, i) => Math.abs(value - (right[i] ?? Number.POSITIVE_INFINITY))));
}
