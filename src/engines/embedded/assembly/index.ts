// The kernels' module: plain functions over linear memory, no allocation of their own.

export { geluErf, geluTanh, maximum, sumExp, swiglu } from './activation';
export { attention } from './attention';
export { addInPlace, gemm, packPanels, unpackRow, widenBf16 } from './gemm';
export { layerNorm, normAndRotate, rmsNorm } from './norm';

/** The first byte of memory that the module does not use itself. */
export function heapBase(): usize {
  return __heap_base;
}
