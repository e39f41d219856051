// Opens a Hugging Face Qwen3-VL folder: every tensor is checked before a byte of weights is read.
import { CheckpointError } from '../../errors.js';
import { type ModelConfig, readModelConfig, type VisionConfig } from './checkpoint-config.js';
import type { Pointer } from './kernels.js';
import { ADDRESSABLE_BYTES, megabytes } from './memory.js';
import { readTensorIndex, type TensorEntry, type TensorIndex } from './safetensors.js';
import { type Linear, type MatrixPart, patchInputs, patchShape, readWeights, type TensorReader } from './weights.js';

/** Left for activations and the smallest useful cache. */
const RESERVED_BYTES = 256_000_000;

/** Plain data, so that worker threads can be given it. */
export interface Checkpoint {
  readonly directory: string;
  readonly config: ModelConfig;
  /** Every tensor the model needs, checked. */
  readonly tensors: ReadonlyMap<string, TensorEntry>;
  readonly files: readonly string[];
  /** Memory that the expanded weights take in each worker. */
  readonly weightBytes: number;
}

/** Reads configurations and headers only; throws a CheckpointError that names the tensor and the file. */
export async function openCheckpoint(directory: string): Promise<Checkpoint> {
  const config = await readModelConfig(directory);
  const index = await readTensorIndex(directory);
  const checker = new TensorChecker(index);
  readWeights(config, checker);
  const weightBytes = checker.values * 4;
  if (weightBytes > ADDRESSABLE_BYTES - RESERVED_BYTES) {
    throw new CheckpointError('too big for the embedded engine', {
      where: directory,
      expected: `at most ${megabytes(ADDRESSABLE_BYTES - RESERVED_BYTES)} MB of float32 weights (32-bit WebAssembly)`,
      found: `${megabytes(weightBytes)} MB`,
      remedy: 'Serve this checkpoint with a GPU engine',
    });
  }
  return { directory, config, tensors: checker.checked, files: index.files, weightBytes };
}

class TensorChecker implements TensorReader {
  readonly #index: TensorIndex;
  readonly checked = new Map<string, TensorEntry>();
  /** Floats that the expanded weights take. */
  values = 0;

  constructor(index: TensorIndex) {
    this.#index = index;
  }

  matrix(parts: readonly MatrixPart[], inputs: number, bias: readonly string[]): Linear {
    let outputs = 0;
    parts.forEach(({ name, outputs: rows }, index) => {
      this.#check(name, [rows, inputs]);
      const biasName = bias[index];
      if (biasName !== undefined) this.vector(biasName, [rows]);
      outputs += rows;
    });
    this.values += outputs * inputs;
    return { packed: 0, bias: 0, inputs, outputs };
  }

  vector(name: string, shape: readonly number[]): Pointer {
    this.#check(name, shape);
    this.values += product(shape);
    return 0;
  }

  patchEmbedding(name: string, vision: VisionConfig, bias: string): Linear {
    this.#check(name, patchShape(vision));
    this.vector(bias, [vision.hiddenSize]);
    const inputs = patchInputs(vision);
    this.values += inputs * vision.hiddenSize;
    return { packed: 0, bias: 0, inputs, outputs: vision.hiddenSize };
  }

  #check(name: string, shape: readonly number[]): void {
    this.checked.set(name, this.#index.require(name, shape));
  }
}

function product(shape: readonly number[]): number {
  return shape.reduce((total, side) => total * side, 1);
}
