// Normalisations and rotary position embedding, row by row.
import { sumLanes } from './math';

/** y = weight · x / sqrt(mean(x²) + epsilon), for `rows` rows of `width` floats (a multiple of four). */
export function rmsNorm(x: usize, weight: usize, y: usize, rows: usize, width: usize, epsilon: f32): void {
  const bytes = width << 2;
  for (let row: usize = 0; row < rows; row++) {
    scaleRow(x, weight, y, bytes, inverseRms(x, bytes, width, epsilon));
    x += bytes;
    y += bytes;
  }
}

function inverseRms(x: usize, bytes: usize, width: usize, epsilon: f32): f32 {
  let sum = f32x4.splat(0);
  for (let i: usize = 0; i < bytes; i += 16) {
    const v = v128.load(x + i);
    sum = f32x4.add(sum, f32x4.mul(v, v));
  }
  return <f32>1 / sqrt<f32>(sumLanes(sum) / <f32>width + epsilon);
}

function scaleRow(x: usize, weight: usize, y: usize, bytes: usize, scale: f32): void {
  const s = f32x4.splat(scale);
  for (let i: usize = 0; i < bytes; i += 16) {
    v128.store(y + i, f32x4.mul(v128.load(weight + i), f32x4.mul(v128.load(x + i), s)));
  }
}

/** y = weight · (x - mean) / sqrt(variance + epsilon) + bias, the population variance. */
export function layerNorm(x: usize, weight: usize, bias: usize, y: usize, rows: usize, width: usize, epsilon: f32): void {
  const bytes = width << 2;
  for (let row: usize = 0; row < rows; row++) {
    let sum = f32x4.splat(0);
    for (let i: usize = 0; i < bytes; i += 16) sum = f32x4.add(sum, v128.load(x + i));
    const mean = f32x4.splat(sumLanes(sum) / <f32>width);
    let squares = f32x4.splat(0);
    for (let i: usize = 0; i < bytes; i += 16) {
      const d = f32x4.sub(v128.load(x + i), mean);
      squares = f32x4.add(squares, f32x4.mul(d, d));
    }
    const scale = f32x4.splat(<f32>1 / sqrt<f32>(sumLanes(squares) / <f32>width + epsilon));
    for (let i: usize = 0; i < bytes; i += 16) {
      const normal = f32x4.mul(f32x4.sub(v128.load(x + i), mean), scale);
      v128.store(y + i, f32x4.add(f32x4.mul(normal, v128.load(weight + i)), v128.load(bias + i)));
    }
    x += bytes;
    y += bytes;
  }
}

/**
 * In place on `heads` heads of each row: RMSNorm over the head (skipped where weight is 0), then the rotation of its two halves
 * by the row's cosines and sines (headWidth / 2 floats each, packed row after row).
 */
export function normAndRotate(
  x: usize,
  stride: usize,
  rows: usize,
  heads: usize,
  headWidth: usize,
  weight: usize,
  epsilon: f32,
  cosines: usize,
  sines: usize,
): void {
  const headBytes = headWidth << 2;
  for (let row: usize = 0; row < rows; row++) {
    let head = x + row * (stride << 2);
    for (let h: usize = 0; h < heads; h++) {
      if (weight !== 0) scaleRow(head, weight, head, headBytes, inverseRms(head, headBytes, headWidth, epsilon));
      rotate(head, headBytes >> 1, cosines, sines);
      head += headBytes;
    }
    cosines += headBytes >> 1;
    sines += headBytes >> 1;
  }
}

function rotate(head: usize, half: usize, cosines: usize, sines: usize): void {
  for (let i: usize = 0; i < half; i += 16) {
    const low = v128.load(head + i);
    const high = v128.load(head + half + i);
    const c = v128.load(cosines + i);
    const s = v128.load(sines + i);
    v128.store(head + i, f32x4.sub(f32x4.mul(low, c), f32x4.mul(high, s)));
    v128.store(head + half + i, f32x4.add(f32x4.mul(high, c), f32x4.mul(low, s)));
  }
}
