// The vision transformer: patches of one picture → image tokens for the text model, plus one plane per DeepStack level.
//   x = W_patch · patch + interpolated position;   x += attention(layerNorm(x));   x += W_2 gelu(W_1 layerNorm(x))
//   tokens = merger(x after the last block);       plane_i = merger_i(x after block deepStackBlocks[i])
import type { VisionConfig } from './checkpoint-config.js';
import type { Kernels, Pointer } from './kernels.js';
import { project, projectOnto } from './linear.js';
import type { PatchGrid } from './pixel-values.js';
import { RotaryTable } from './rope.js';
import { Scratch } from './scratch.js';
import type { PatchMerger, VisionBlock, Weights } from './weights.js';

const NORM_EPSILON = 1e-6;

/** Features of one picture in the kernels' memory until `free`. */
export interface ImageFeatures {
  readonly tokens: number;
  /** One for the embedding itself and one per DeepStack level. */
  readonly planes: number;
  /** [tokens][outputSize] floats. */
  plane(index: number): Pointer;
  free(): void;
}

export class VisionTower {
  readonly #config: VisionConfig;
  readonly #weights: Weights['vision'];
  readonly #kernels: Kernels;
  readonly #scratch: Scratch;
  readonly #rotary: RotaryTable;

  constructor(config: VisionConfig, weights: Weights['vision'], kernels: Kernels) {
    this.#config = config;
    this.#weights = weights;
    this.#kernels = kernels;
    this.#scratch = new Scratch(kernels.memory);
    this.#rotary = new RotaryTable(config.ropeTheta, config.hiddenSize / config.heads / 2);
  }

  encode(grid: PatchGrid): ImageFeatures {
    const patches = grid.rows * grid.columns;
    const features = this.#allocateFeatures(patches / this.#config.mergeSize ** 2);
    const hidden = this.#embed(grid);
    const rotation = this.#rotation(grid);
    this.#weights.blocks.forEach((block, index) => {
      this.#runBlock(block, hidden, patches, rotation);
      const level = this.#config.deepStackBlocks.indexOf(index);
      const merger = this.#weights.deepStackMergers[level];
      if (merger !== undefined) this.#merge(merger, hidden, patches, features.plane(level + 1), true);
    });
    this.#merge(this.#weights.merger, hidden, patches, features.plane(0), false);
    return features;
  }

  #allocateFeatures(tokens: number): ImageFeatures {
    const { memory } = this.#kernels;
    const planes = 1 + this.#config.deepStackBlocks.length;
    const planeBytes = tokens * this.#config.outputSize * 4;
    const pointer = memory.allocate(planes * planeBytes);
    return { tokens, planes, plane: (index) => pointer + index * planeBytes, free: () => memory.free(pointer) };
  }

  #embed(grid: PatchGrid): Pointer {
    const { run, memory } = this.#kernels;
    const patches = grid.rows * grid.columns;
    const inputs = this.#weights.patchEmbedding.inputs;
    const pixels = this.#scratch.floats('pixels', patches * inputs);
    const hidden = this.#scratch.floats('hidden', patches * this.#config.hiddenSize);
    memory.floats(pixels, patches * inputs).set(grid.pixels);
    project(run, this.#weights.patchEmbedding, pixels, hidden, patches);
    this.#addPositions(grid, hidden);
    return hidden;
  }

  /** Adds the learned table, resampled bilinearly so that its corners meet the grid's corners. */
  #addPositions(grid: PatchGrid, hidden: Pointer): void {
    const { hiddenSize, positionSide } = this.#config;
    const table = this.#kernels.memory.floats(this.#weights.positions, positionSide ** 2 * hiddenSize);
    const target = this.#kernels.memory.floats(hidden, grid.rows * grid.columns * hiddenSize);
    mergeOrder(grid, this.#config.mergeSize).forEach(({ row, column }, patch) => {
      const [top, down] = cornerTaps(row, grid.rows, positionSide);
      const [left, across] = cornerTaps(column, grid.columns, positionSide);
      const bottom = Math.min(top + 1, positionSide - 1);
      const right = Math.min(left + 1, positionSide - 1);
      const corners = [
        [top * positionSide + left, Math.fround(Math.fround(1 - down) * Math.fround(1 - across))],
        [top * positionSide + right, Math.fround(Math.fround(1 - down) * across)],
        [bottom * positionSide + left, Math.fround(down * Math.fround(1 - across))],
        [bottom * positionSide + right, Math.fround(down * across)],
      ] as const;
      for (let i = 0; i < hiddenSize; i++) {
        let sum = 0;
        for (const [corner, weight] of corners)
          sum = Math.fround(sum + Math.fround((table[corner * hiddenSize + i] ?? 0) * weight));
        target[patch * hiddenSize + i] = (target[patch * hiddenSize + i] ?? 0) + sum;
      }
    });
  }

  /** The first quarter of a head's angles follows the patch's row, the second its column; the halves rotate together. */
  #rotation(grid: PatchGrid): { cosines: Pointer; sines: Pointer } {
    const quarter = this.#config.hiddenSize / this.#config.heads / 4;
    const count = grid.rows * grid.columns * 2 * quarter;
    const cosines = this.#scratch.floats('cosines', count);
    const sines = this.#scratch.floats('sines', count);
    const cosineValues = this.#kernels.memory.floats(cosines, count);
    const sineValues = this.#kernels.memory.floats(sines, count);
    mergeOrder(grid, this.#config.mergeSize).forEach(({ row, column }, patch) => {
      for (let i = 0; i < quarter; i++) {
        this.#rotary.copy(row, i, cosineValues, sineValues, patch * 2 * quarter + i);
        this.#rotary.copy(column, i, cosineValues, sineValues, patch * 2 * quarter + quarter + i);
      }
    });
    return { cosines, sines };
  }

  #runBlock(block: VisionBlock, hidden: Pointer, patches: number, rotation: { cosines: Pointer; sines: Pointer }): void {
    const { run } = this.#kernels;
    const { hiddenSize: size, heads, feedForwardSize } = this.#config;
    const headWidth = size / heads;
    const normed = this.#scratch.floats('normed', patches * size);
    const fused = this.#scratch.floats('fused', patches * 3 * size);
    const mixed = this.#scratch.floats('mixed', patches * size);
    run.layerNorm(hidden, block.attentionNorm.weight, block.attentionNorm.bias, normed, patches, size, NORM_EPSILON);
    project(run, block.queryKeyValue, normed, fused, patches);
    // Queries and keys are neighbours: 2 x heads heads of one row.
    run.normAndRotate(fused, 3 * size, patches, 2 * heads, headWidth, 0, 0, rotation.cosines, rotation.sines);
    const keys = fused + size * 4;
    const values = keys + size * 4;
    run.attention(
      fused,
      3 * size,
      mixed,
      size,
      patches,
      heads,
      1,
      headWidth,
      1 / Math.sqrt(headWidth),
      keys,
      values,
      0,
      keys,
      values,
      3 * size,
      0,
      0,
      this.#scratch.floats('scores', 2 * (patches + 8)),
    );
    projectOnto(run, block.attentionOutput, mixed, hidden, patches);

    const inner = this.#scratch.floats('inner', patches * feedForwardSize);
    run.layerNorm(hidden, block.feedForwardNorm.weight, block.feedForwardNorm.bias, normed, patches, size, NORM_EPSILON);
    project(run, block.up, normed, inner, patches);
    run.geluTanh(inner, patches * feedForwardSize);
    projectOnto(run, block.down, inner, hidden, patches);
  }

  /** Four neighbouring patches become one token; DeepStack mergers normalise after joining them, the last merger before. */
  #merge(merger: PatchMerger, hidden: Pointer, patches: number, target: Pointer, joinFirst: boolean): void {
    const { run } = this.#kernels;
    const joined = this.#config.mergeSize ** 2;
    const tokens = patches / joined;
    const width = this.#config.hiddenSize * joined;
    const normed = this.#scratch.floats('merged', tokens * width);
    const inner = this.#scratch.floats('mergedInner', tokens * width);
    const [rows, size] = joinFirst ? [tokens, width] : [patches, this.#config.hiddenSize];
    run.layerNorm(hidden, merger.norm.weight, merger.norm.bias, normed, rows, size, NORM_EPSILON);
    project(run, merger.first, normed, inner, tokens);
    run.geluErf(inner, tokens * width);
    project(run, merger.second, inner, target, tokens);
  }
}

/** Patches in the order of the tower's rows: the members of one merged token are neighbours. */
export function mergeOrder(grid: { rows: number; columns: number }, mergeSize: number): { row: number; column: number }[] {
  const order: { row: number; column: number }[] = [];
  for (let top = 0; top < grid.rows; top += mergeSize) {
    for (let left = 0; left < grid.columns; left += mergeSize) {
      for (let row = top; row < top + mergeSize; row++) {
        for (let column = left; column < left + mergeSize; column++) order.push({ row, column });
      }
    }
  }
  return order;
}

/** The table line at or before grid line `index`, and the fraction of the way to the next, in float32 as the reference. */
function cornerTaps(index: number, size: number, side: number): [line: number, fraction: number] {
  const place = Math.fround(Math.fround(index * (side - 1)) / Math.max(size - 1, 1));
  const line = Math.floor(place);
  return [line, Math.fround(place - line)];
}
