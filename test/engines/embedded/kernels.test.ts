// Each kernel against the same formula written plainly in double precision.
import { beforeAll, describe, expect, it } from 'vitest';
import { type Kernels, loadKernels, type Pointer } from '../../../src/engines/embedded/kernels.js';
import { createRandom } from '../../../src/random.js';

let kernels: Kernels;

beforeAll(async () => {
  kernels = await loadKernels();
});

describe('gemm', () => {
  it.each([
    [1, 16, 8],
    [3, 32, 24],
    [4, 6, 16],
    [7, 64, 40],
  ])('%i rows, depth %i, %i columns, with bias and residual', (rows, depth, columns) => {
    const x = numbers(rows * depth, 1);
    const w = numbers(columns * depth, 2);
    const bias = numbers(columns, 3);
    const before = numbers(rows * columns, 4);
    const packed = kernels.memory.allocate(w.length * 4);
    kernels.run.packPanels(put(w), columns, depth, packed, 0);
    const y = put(before);
    kernels.run.gemm(put(x), depth, packed, put(bias), y, columns, rows, depth, columns / 8, 1);
    const result = kernels.memory.floats(y, rows * columns);
    for (let row = 0; row < rows; row++) {
      for (let column = 0; column < columns; column++) {
        let sum = at(bias, column) + at(before, row * columns + column);
        for (let k = 0; k < depth; k++) sum += at(x, row * depth + k) * at(w, column * depth + k);
        expect(result[row * columns + column]).toBeCloseTo(sum, 4);
      }
    }
  });

  it('gives back a packed row as it was', () => {
    const w = numbers(24 * 10, 5);
    const packed = kernels.memory.allocate(w.length * 4);
    kernels.run.packPanels(put(w), 24, 10, packed, 0);
    const row = kernels.memory.allocate(40);
    kernels.run.unpackRow(packed, 13, 10, row);
    expect([...kernels.memory.floats(row, 10)]).toEqual([...w.subarray(130, 140)]);
  });
});

describe('normalisation', () => {
  it('rmsNorm', () => {
    const x = numbers(32, 1);
    const weight = numbers(16, 2);
    const y = kernels.memory.allocate(32 * 4);
    kernels.run.rmsNorm(put(x), put(weight), y, 2, 16, 1e-6);
    for (const row of [0, 1]) {
      const line = x.subarray(row * 16, row * 16 + 16);
      const scale = 1 / Math.sqrt(line.reduce((sum, v) => sum + v * v, 0) / 16 + 1e-6);
      line.forEach((v, i) => {
        expect(kernels.memory.floats(y, 32)[row * 16 + i]).toBeCloseTo(v * scale * at(weight, i), 5);
      });
    }
  });

  it('layerNorm', () => {
    const x = numbers(16, 1);
    const y = kernels.memory.allocate(16 * 4);
    kernels.run.layerNorm(put(x), put(numbers(16, 2)), put(numbers(16, 3)), y, 1, 16, 1e-6);
    const mean = x.reduce((sum, v) => sum + v, 0) / 16;
    const deviation = Math.sqrt(x.reduce((sum, v) => sum + (v - mean) ** 2, 0) / 16 + 1e-6);
    x.forEach((v, i) => {
      expect(kernels.memory.floats(y, 16)[i]).toBeCloseTo(
        ((v - mean) / deviation) * at(numbers(16, 2), i) + at(numbers(16, 3), i),
        5,
      );
    });
  });

  it('rotates the two halves of a head by the row’s angles', () => {
    const x = numbers(16, 1);
    const angles = numbers(8, 2);
    const head = put(x);
    kernels.run.normAndRotate(head, 16, 1, 1, 16, 0, 0, put(angles.map(Math.cos)), put(angles.map(Math.sin)));
    const rotated = kernels.memory.floats(head, 16);
    angles.forEach((angle, i) => {
      expect(rotated[i]).toBeCloseTo(at(x, i) * Math.cos(angle) - at(x, i + 8) * Math.sin(angle), 5);
      expect(rotated[i + 8]).toBeCloseTo(at(x, i + 8) * Math.cos(angle) + at(x, i) * Math.sin(angle), 5);
    });
  });
});

describe('activations', () => {
  // Steps of a seventh from -14 to 14, and values where exponentials overflow or vanish.
  const range = Float32Array.from([...Array.from({ length: 196 }, (_, i) => (i - 98) / 7), -200, -90, 90, 200]);

  it('swiglu', () => {
    const y = kernels.memory.allocate(range.length * 4);
    kernels.run.swiglu(put(Float32Array.from([...range, ...range.map(() => 1)])), y, 1, range.length);
    range.forEach((x, i) => {
      expectRelative(kernels.memory.floats(y, range.length)[i], x / (1 + Math.exp(-x)));
    });
  });

  it('the two forms of gelu', () => {
    const tanh = put(range);
    const erf = put(range);
    kernels.run.geluTanh(tanh, range.length);
    kernels.run.geluErf(erf, range.length);
    range.forEach((x, i) => {
      const inner = Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3);
      expect(kernels.memory.floats(tanh, range.length)[i]).toBeCloseTo(0.5 * x * (1 + Math.tanh(inner)), 5);
      expect(kernels.memory.floats(erf, range.length)[i]).toBeCloseTo(x * gaussian(x), 5);
    });
  });

  it('the softmax normaliser of any number of logits, at any temperature', () => {
    for (const count of [1, 4, 7, 101]) {
      const logits = numbers(count, count).map((v) => v * 8);
      const peak = kernels.run.maximum(put(logits), count);
      expect(peak).toBe(Math.max(...logits));
      const sum = kernels.run.sumExp(put(logits), count, peak, 1 / 0.7);
      expectRelative(
        sum,
        logits.reduce((total, logit) => total + Math.exp((logit - peak) / 0.7), 0),
      );
    }
  });
});

describe('attention', () => {
  it('of two query heads on one key head, over a prefix and a branch', () => {
    const [width, prefixLength, rows] = [8, 5, 3];
    const queries = numbers(rows * 2 * width, 1);
    const rowSize = 2 * width;
    const cache = numbers((prefixLength + 2 + rows) * rowSize, 2);
    const start = put(cache);
    const branch = start + (prefixLength + 2) * rowSize * 4;
    const out = kernels.memory.allocate(queries.length * 4);
    const scores = kernels.memory.allocate(2 * (prefixLength + rows + 8) * 4);
    kernels.run.attention(
      ...([put(queries), 2 * width, out, 2 * width, rows, 2, 2, width, 0.5] as const),
      ...([start, start + width * 4, prefixLength, branch, branch + width * 4, rowSize] as const),
      ...([1, 0, scores] as const),
    );
    for (let row = 0; row < rows; row++) {
      const visible = [0, 1, 2, 3, 4, 7, 8, 9].slice(0, prefixLength + row + 1);
      for (const head of [0, 1]) {
        const query = queries.subarray((row * 2 + head) * width, (row * 2 + head + 1) * width);
        const weights = visible.map((key) =>
          Math.exp(0.5 * query.reduce((sum, q, i) => sum + q * at(cache, key * rowSize + i), 0)),
        );
        const total = weights.reduce((sum, weight) => sum + weight, 0);
        for (let i = 0; i < width; i++) {
          const expected = visible.reduce(
            (sum, key, j) => sum + ((weights[j] ?? 0) / total) * at(cache, key * rowSize + width + i),
            0,
          );
          expect(kernels.memory.floats(out, queries.length)[(row * 2 + head) * width + i]).toBeCloseTo(expected, 5);
        }
      }
    }
  });
});

describe('memory', () => {
  it('hands out aligned blocks that do not overlap, and reuses what is freed', () => {
    const { memory } = kernels;
    const blocks = [100, 5000, 64, 1].map((bytes) => memory.allocate(bytes));
    expect(blocks.every((pointer) => pointer % 64 === 0)).toBe(true);
    expect(new Set(blocks).size).toBe(4);
    for (const pointer of blocks.slice(0, 3)) memory.free(pointer);
    expect(memory.allocate(5100)).toBe(Math.min(...blocks));
  });

  it('refuses to free twice, and to grow beyond its limit', async () => {
    const { memory } = await loadKernels(1_000_000);
    const pointer = memory.allocate(10);
    memory.free(pointer);
    expect(() => memory.free(pointer)).toThrow(/freed twice/);
    expect(() => memory.allocate(2_000_000)).toThrow(
      /out of WebAssembly memory; expected at most 1 MB in one worker, found a need of 3 MB/,
    );
  });
});

function numbers(count: number, seed: number): Float32Array {
  const random = createRandom(seed);
  return Float32Array.from({ length: count }, () => 2 * random() - 1);
}

function put(values: Float32Array): Pointer {
  const pointer = kernels.memory.allocate(values.length * 4);
  kernels.memory.floats(pointer, values.length).set(values);
  return pointer;
}

function at(values: Float32Array, index: number): number {
  return values[index] ?? Number.NaN;
}

function expectRelative(found: number | undefined, expected: number): void {
  expect(Math.abs((found ?? Number.NaN) - expected)).toBeLessThanOrEqual(3e-7 * Math.max(Math.abs(expected), 1e-30) + 1e-36);
}

/** The normal distribution function, by Simpson's rule over its density. */
function gaussian(x: number): number {
  const end = Math.min(Math.abs(x), 12);
  const steps = 2000;
  const density = (t: number) => Math.exp((-t * t) / 2) / Math.sqrt(2 * Math.PI);
  let sum = density(0) + density(end);
  for (let i = 1; i < steps; i++) sum += (i % 2 === 1 ? 4 : 2) * density((end * i) / steps);
  const half = (sum * end) / steps / 3;
  return x < 0 ? 0.5 - half : 0.5 + half;
}
