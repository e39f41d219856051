// Bicubic resizing against Pillow's, byte for byte; resize.json comes from make_resize_golden.py.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { resizeBicubic } from '../../src/media/resize.js';

interface GoldenCase {
  readonly from: readonly [number, number];
  readonly to: readonly [number, number];
  readonly sha256: string;
}

const { cases } = JSON.parse(readFileSync(new URL('./resize.json', import.meta.url), 'utf8')) as { cases: GoldenCase[] };

describe('resizeBicubic', () => {
  it.each(cases)('$from to $to gives the bytes that Pillow gives', ({ from, to, sha256 }) => {
    const [width, height] = from;
    const resized = resizeBicubic(pattern(width, height), { width, height }, { width: to[0], height: to[1] });
    expect(resized).toHaveLength(to[0] * to[1] * 3);
    expect(createHash('sha256').update(resized).digest('hex')).toBe(sha256);
  });
});

/** The formula of make_resize_golden.py. */
function pattern(width: number, height: number): Uint8Array {
  return Uint8Array.from({ length: width * height * 3 }, (_, i) => {
    const channel = i % 3;
    const x = Math.floor(i / 3) % width;
    const y = Math.floor(i / 3 / width);
    return (x * 7 + y * 13 + channel * 29 + ((x * y) % 31) * 5) % 256;
  });
}
