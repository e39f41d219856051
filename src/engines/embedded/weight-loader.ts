// Expands the weights of a checked checkpoint to float32 in the kernels' memory, packed as the matrix kernel wants them.
import { type FileHandle, open } from 'node:fs/promises';
import { CheckpointError } from '../../errors.js';
import type { Checkpoint } from './checkpoint.js';
import type { VisionConfig } from './checkpoint-config.js';
import type { Kernels, Pointer } from './kernels.js';
import type { TensorEntry } from './safetensors.js';
import { type Linear, type MatrixPart, patchInputs, readWeights, type TensorReader, type Weights } from './weights.js';

/** Output columns per packed panel, as in assembly/gemm.ts. */
const PANEL = 8;
/** Weights are read and packed in stretches of at most this many bytes. */
const STAGING_BYTES = 8_000_000;

export async function loadWeights(checkpoint: Checkpoint, kernels: Kernels): Promise<Weights> {
  const loader = new TensorLoader(checkpoint.tensors, kernels);
  const weights = readWeights(checkpoint.config, loader);
  await loader.load();
  return weights;
}

/** Allocates while the model is walked, then reads the files in `load`. */
class TensorLoader implements TensorReader {
  readonly #tensors: ReadonlyMap<string, TensorEntry>;
  readonly #kernels: Kernels;
  readonly #jobs: ((file: OpenFiles) => Promise<void>)[] = [];

  constructor(tensors: ReadonlyMap<string, TensorEntry>, kernels: Kernels) {
    this.#tensors = tensors;
    this.#kernels = kernels;
  }

  matrix(parts: readonly MatrixPart[], inputs: number, bias: readonly string[]): Linear {
    const outputs = parts.reduce((total, part) => total + part.outputs, 0);
    const packed = this.#allocateZeros(roundUp(outputs, PANEL) * inputs);
    const biasAt = bias.length === 0 ? 0 : this.#allocateZeros(roundUp(outputs, PANEL));
    let firstRow = 0;
    parts.forEach(({ name, outputs: rows }, index) => {
      const start = firstRow;
      const entry = this.#entry(name);
      this.#jobs.push((files) => this.#packRows(files, entry, inputs, packed, start));
      const biasName = bias[index];
      if (biasName !== undefined) {
        const biasEntry = this.#entry(biasName);
        this.#jobs.push((files) => this.#copyValues(files, biasEntry, biasAt + start * 4));
      }
      firstRow += rows;
    });
    return { packed, bias: biasAt, inputs, outputs };
  }

  vector(name: string, shape: readonly number[]): Pointer {
    const entry = this.#entry(name);
    const pointer = this.#kernels.memory.allocate(product(shape) * 4);
    this.#jobs.push((files) => this.#copyValues(files, entry, pointer));
    return pointer;
  }

  patchEmbedding(name: string, vision: VisionConfig, bias: string): Linear {
    const inputs = patchInputs(vision);
    const entry = this.#entry(name);
    const packed = this.#allocateZeros(vision.hiddenSize * inputs);
    this.#jobs.push(async (files) => {
      const all = this.#kernels.memory.allocate(product(entry.shape) * 4);
      await this.#copyValues(files, entry, all);
      this.#sumFrames(all, vision);
      this.#kernels.run.packPanels(all, vision.hiddenSize, inputs, packed, 0);
      this.#kernels.memory.free(all);
    });
    return { packed, bias: this.vector(bias, [vision.hiddenSize]), inputs, outputs: vision.hiddenSize };
  }

  async load(): Promise<void> {
    const files = new OpenFiles();
    try {
      for (const job of this.#jobs) await job(files);
    } finally {
      await files.close();
    }
  }

  #entry(name: string): TensorEntry {
    const entry = this.#tensors.get(name);
    if (entry === undefined) throw new CheckpointError(`tensor ${name} was never checked`);
    return entry;
  }

  #allocateZeros(values: number): Pointer {
    const pointer = this.#kernels.memory.allocate(values * 4);
    this.#kernels.memory.floats(pointer, values).fill(0);
    return pointer;
  }

  async #packRows(files: OpenFiles, entry: TensorEntry, inputs: number, packed: Pointer, firstRow: number): Promise<void> {
    const rows = product(entry.shape) / inputs;
    const step = Math.max(1, Math.floor(STAGING_BYTES / (inputs * 4)));
    const staging = this.#kernels.memory.allocate(Math.min(step, rows) * inputs * 4);
    for (let row = 0; row < rows; row += step) {
      const count = Math.min(step, rows - row);
      await this.#readValues(files, entry, row * inputs, count * inputs, staging);
      this.#kernels.run.packPanels(staging, count, inputs, packed, firstRow + row);
    }
    this.#kernels.memory.free(staging);
  }

  async #copyValues(files: OpenFiles, entry: TensorEntry, target: Pointer): Promise<void> {
    const values = product(entry.shape);
    const step = STAGING_BYTES / 4;
    for (let start = 0; start < values; start += step) {
      await this.#readValues(files, entry, start, Math.min(step, values - start), target + start * 4);
    }
  }

  async #readValues(files: OpenFiles, entry: TensorEntry, start: number, count: number, target: Pointer): Promise<void> {
    const width = entry.dtype === 'F32' ? 4 : 2;
    const bytes = await files.read(entry, entry.offset + start * width, count * width);
    const { memory, run } = this.#kernels;
    if (entry.dtype === 'F32') return memory.bytes(target, count * 4).set(bytes);
    if (entry.dtype === 'F16') return widenHalf(bytes, memory.floats(target, count));
    const raw = memory.allocate(count * 2);
    memory.bytes(raw, count * 2).set(bytes);
    run.widenBf16(raw, target, count);
    memory.free(raw);
  }

  /** In place: [outputs, 3, frames, area] → [outputs, 3, area]. */
  #sumFrames(pointer: Pointer, vision: VisionConfig): void {
    const area = vision.patchSize ** 2;
    const frames = vision.temporalPatchSize;
    const values = this.#kernels.memory.floats(pointer, vision.hiddenSize * 3 * frames * area);
    for (let plane = 0; plane < vision.hiddenSize * 3; plane++) {
      for (let pixel = 0; pixel < area; pixel++) {
        let total = 0;
        for (let frame = 0; frame < frames; frame++) total += values[(plane * frames + frame) * area + pixel] ?? 0;
        values[plane * area + pixel] = total;
      }
    }
  }
}

class OpenFiles {
  readonly #handles = new Map<string, FileHandle>();

  async read(entry: TensorEntry, position: number, bytes: number): Promise<Uint8Array> {
    let handle = this.#handles.get(entry.file);
    if (handle === undefined) {
      handle = await open(entry.file);
      this.#handles.set(entry.file, handle);
    }
    const buffer = new Uint8Array(bytes);
    const { bytesRead } = await handle.read(buffer, 0, bytes, position);
    if (bytesRead !== bytes) {
      throw new CheckpointError(`truncated while reading tensor ${entry.name}`, {
        where: entry.file,
        expected: `${bytes} bytes`,
        found: `${bytesRead}`,
      });
    }
    return buffer;
  }

  async close(): Promise<void> {
    for (const handle of this.#handles.values()) await handle.close();
  }
}

function widenHalf(bytes: Uint8Array, target: Float32Array): void {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let i = 0; i < target.length; i++) {
    const half = view.getUint16(i * 2, true);
    const exponent = (half >> 10) & 31;
    const fraction = half & 1023;
    const magnitude =
      exponent === 0
        ? fraction * 2 ** -24
        : exponent === 31
          ? fraction === 0
            ? Infinity
            : NaN
          : (1 + fraction / 1024) * 2 ** (exponent - 15);
    target[i] = half & 0x8000 ? -magnitude : magnitude;
  }
}

function product(shape: readonly number[]): number {
  return shape.reduce((total, side) => total * side, 1);
}

function roundUp(value: number, multiple: number): number {
  return Math.ceil(value / multiple) * multiple;
}
