// One matrix product with packed weights, as the model's files write it.
import type { KernelFunctions, Pointer } from './kernels.js';
import type { Linear } from './weights.js';

const PANEL = 8;

/** Floats between two output rows: panels of eight columns are always written whole. */
export function outputStride(linear: Linear): number {
  return Math.ceil(linear.outputs / PANEL) * PANEL;
}

/** y = x · Wᵀ + bias for contiguous rows. */
export function project(
  run: KernelFunctions,
  linear: Linear,
  x: Pointer,
  y: Pointer,
  rows: number,
  yStride = outputStride(linear),
): void {
  run.gemm(x, linear.inputs, linear.packed, linear.bias, y, yStride, rows, linear.inputs, Math.ceil(linear.outputs / PANEL), 0);
}

/** y += x · Wᵀ + bias: a residual branch. */
export function projectOnto(run: KernelFunctions, linear: Linear, x: Pointer, y: Pointer, rows: number): void {
  run.gemm(
    x,
    linear.inputs,
    linear.packed,
    linear.bias,
    y,
    outputStride(linear),
    rows,
    linear.inputs,
    Math.ceil(linear.outputs / PANEL),
    1,
  );
}
