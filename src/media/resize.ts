// Bicubic reduction and enlargement of 8-bit RGB, equal to Pillow 13's to the last bit: the kernel (a = -0.5) widens with the
// reduction, weights are fixed-point numbers of 22 bits, and the first pass is rounded and clipped to bytes before the second.
import type { Size } from './geometry.js';

const CHANNELS = 3;
const PRECISION_BITS = 32 - 8 - 2;
const HALF = 1 << (PRECISION_BITS - 1);
const SUPPORT = 2;

/** For one output place: the first input place, and the fixed-point weight of it and its followers. */
interface Taps {
  readonly first: number;
  readonly weights: Int32Array;
}

/** `rgb` is height x width x 3 bytes; so is the result, at the new size. */
export function resizeBicubic(rgb: Uint8Array, from: Size, to: Size): Uint8Array {
  if (columnsFirst(from, to)) {
    const low = resizeColumns(rgb, from, to.height);
    return from.width === to.width ? low : resizeRows(low, { width: from.width, height: to.height }, to.width);
  }
  const narrow = from.width === to.width ? rgb : resizeRows(rgb, from, to.width);
  return from.height === to.height ? narrow : resizeColumns(narrow, { width: to.width, height: from.height }, to.height);
}

/** Pillow 13 starts with the height where it shrinks by more than twice what the width does; found by experiment. */
function columnsFirst(from: Size, to: Size): boolean {
  return to.height < from.height && from.height - to.height > 2 * (from.width - to.width);
}

function resizeRows(rgb: Uint8Array, from: Size, width: number): Uint8Array {
  const taps = tapsOf(from.width, width);
  const out = new Uint8Array(width * from.height * CHANNELS);
  for (let y = 0; y < from.height; y++) {
    const line = y * from.width * CHANNELS;
    taps.forEach(({ first, weights }, x) => {
      weigh(rgb, line + first * CHANNELS, CHANNELS, weights, out, (y * width + x) * CHANNELS);
    });
  }
  return out;
}

function resizeColumns(rgb: Uint8Array, from: Size, height: number): Uint8Array {
  const stride = from.width * CHANNELS;
  const out = new Uint8Array(height * stride);
  tapsOf(from.height, height).forEach(({ first, weights }, y) => {
    for (let x = 0; x < from.width; x++) {
      weigh(rgb, first * stride + x * CHANNELS, stride, weights, out, y * stride + x * CHANNELS);
    }
  });
  return out;
}

/** One pixel: Σ weight · input at `start`, `start + step`, …, rounded and clipped. All sums stay within 32 bits. */
function weigh(input: Uint8Array, start: number, step: number, weights: Int32Array, out: Uint8Array, at: number): void {
  let [red, green, blue] = [HALF, HALF, HALF];
  for (let tap = 0, from = start; tap < weights.length; tap++, from += step) {
    const weight = weights[tap] as number;
    red += weight * (input[from] as number);
    green += weight * (input[from + 1] as number);
    blue += weight * (input[from + 2] as number);
  }
  out[at] = clip(red);
  out[at + 1] = clip(green);
  out[at + 2] = clip(blue);
}

function clip(sum: number): number {
  return Math.min(Math.max(sum >> PRECISION_BITS, 0), 255);
}

function tapsOf(inputSize: number, outputSize: number): Taps[] {
  const scale = inputSize / outputSize;
  const filterScale = Math.max(scale, 1);
  const support = SUPPORT * filterScale;
  return Array.from({ length: outputSize }, (_, place) => {
    const center = (place + 0.5) * scale;
    const first = Math.max(0, Math.trunc(center - support + 0.5));
    const end = Math.min(inputSize, Math.trunc(center + support + 0.5));
    const raw = Array.from({ length: end - first }, (_, tap) => cubic((tap + first - center + 0.5) * (1 / filterScale)));
    const total = raw.reduce((sum, weight) => sum + weight, 0);
    return { first, weights: Int32Array.from(raw, (weight) => fixedPoint(total === 0 ? weight : weight * (1 / total))) };
  });
}

/** Rounds half away from zero. */
function fixedPoint(weight: number): number {
  return Math.trunc((weight < 0 ? -0.5 : 0.5) + weight * (1 << PRECISION_BITS));
}

function cubic(distance: number): number {
  const a = -0.5;
  const x = Math.abs(distance);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return (((x - 5) * x + 8) * x - 4) * a;
  return 0;
}
