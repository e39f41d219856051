// Instantiates the WebAssembly kernels and names their signatures; pointers are byte offsets into their memory.
import { readFile } from 'node:fs/promises';
import { EngineError } from '../../errors.js';
import { type GrowableMemory, LinearMemory } from './memory.js';

export type Pointer = number;

/** The functions of assembly/; their arithmetic is described there. Booleans travel as 0 and 1. */
export interface KernelFunctions {
  gemm(
    x: Pointer,
    xStride: number,
    weights: Pointer,
    bias: Pointer,
    y: Pointer,
    yStride: number,
    rows: number,
    depth: number,
    panels: number,
    accumulate: number,
  ): void;
  packPanels(source: Pointer, rows: number, depth: number, packed: Pointer, firstRow: number): void;
  unpackRow(packed: Pointer, row: number, depth: number, target: Pointer): void;
  widenBf16(source: Pointer, target: Pointer, count: number): void;
  addInPlace(y: Pointer, x: Pointer, count: number): void;
  rmsNorm(x: Pointer, weight: Pointer, y: Pointer, rows: number, width: number, epsilon: number): void;
  layerNorm(x: Pointer, weight: Pointer, bias: Pointer, y: Pointer, rows: number, width: number, epsilon: number): void;
  normAndRotate(
    x: Pointer,
    stride: number,
    rows: number,
    heads: number,
    headWidth: number,
    weight: Pointer,
    epsilon: number,
    cosines: Pointer,
    sines: Pointer,
  ): void;
  swiglu(gateUp: Pointer, y: Pointer, rows: number, width: number): void;
  geluTanh(x: Pointer, count: number): void;
  geluErf(x: Pointer, count: number): void;
  maximum(x: Pointer, count: number): number;
  sumExp(x: Pointer, count: number, shift: number, scale: number): number;
  attention(
    queries: Pointer,
    queryStride: number,
    out: Pointer,
    outStride: number,
    rows: number,
    heads: number,
    group: number,
    headWidth: number,
    scale: number,
    prefixKeys: Pointer,
    prefixValues: Pointer,
    prefixLength: number,
    branchKeys: Pointer,
    branchValues: Pointer,
    keyStride: number,
    causal: number,
    firstRow: number,
    scores: Pointer,
  ): void;
}

export interface Kernels {
  readonly run: KernelFunctions;
  readonly memory: LinearMemory;
}

interface KernelExports extends KernelFunctions {
  readonly memory: GrowableMemory;
  heapBase(): Pointer;
}

interface WebAssemblyApi {
  instantiate(bytes: Uint8Array, imports: object): Promise<{ readonly instance: { readonly exports: unknown } }>;
}

/** A fresh instance with its own memory, which grows up to `limitBytes`. */
export async function loadKernels(limitBytes?: number): Promise<Kernels> {
  const file = new URL('./kernels.wasm', import.meta.url);
  const bytes = await readFile(file).catch((cause: unknown) => {
    throw new EngineError('the compiled kernels are missing', {
      where: file.pathname,
      remedy: 'Run npm run build once',
      cause,
    });
  });
  const { WebAssembly } = globalThis as unknown as { readonly WebAssembly: WebAssemblyApi };
  const { instance } = await WebAssembly.instantiate(bytes, {});
  const exports = instance.exports as KernelExports;
  return { run: exports, memory: new LinearMemory(exports.memory, exports.heapBase(), limitBytes) };
}
