// The text decoder: rows of tokens go through all layers at once, reading and extending a cache of keys and values.
//   x += W_o · attention(rope(norm(W_q n)), rope(norm(W_k n)), W_v n),  n = rmsNorm(x)
//   x += W_down · (silu(W_gate m) ∘ W_up m),                            m = rmsNorm(x)
//   x += deepStack_l at image rows, for the first layers l
// A row's result is the same to the last bit in whatever block, chunk or batch it is computed.
import type { TextConfig } from './checkpoint-config.js';
import type { Kernels, Pointer } from './kernels.js';
import type { KeyValueCache } from './kv-cache.js';
import { outputStride, project, projectOnto } from './linear.js';
import { interleavedAxes, RotaryTable } from './rope.js';
import { Scratch } from './scratch.js';
import type { ImageFeatures } from './vision-tower.js';
import type { TextLayer, Weights } from './weights.js';

/** Consecutive rows that attend causally to themselves behind the first `prefixRows` rows of the cache. */
export interface RowBlock {
  readonly rows: number;
  readonly prefixRows: number;
}

/** `count` rows that show image tokens firstToken, firstToken + 1, … of a picture, from row `row` on. */
export interface ImageRows {
  readonly row: number;
  readonly count: number;
  readonly features: ImageFeatures;
  readonly firstToken: number;
}

export interface RowBatch {
  /** Token id per row; ignored where an image covers the row. */
  readonly ids: readonly number[];
  /** Time, height and width position per row. */
  readonly positions: Int32Array;
  readonly images: readonly ImageRows[];
  /** Row r's keys and values go to cache row firstSlot + r. */
  readonly firstSlot: number;
  /** Split of the rows in order. */
  readonly blocks: readonly RowBlock[];
  /** Final hidden states are wanted from this row on; ids.length for none. */
  readonly outputFrom: number;
}

export class TextModel {
  readonly #config: TextConfig;
  readonly #weights: Weights['text'];
  readonly #kernels: Kernels;
  readonly #scratch: Scratch;
  readonly #rotary: RotaryTable;
  readonly #axes: Uint8Array;

  constructor(config: TextConfig, weights: Weights['text'], kernels: Kernels) {
    this.#config = config;
    this.#weights = weights;
    this.#kernels = kernels;
    this.#scratch = new Scratch(kernels.memory);
    this.#rotary = new RotaryTable(config.ropeTheta, config.headWidth);
    this.#axes = interleavedAxes(config);
  }

  /** Runs the batch and returns its normalised hidden states, [ids.length - outputFrom][hiddenSize], valid until the next call. */
  forward(batch: RowBatch, cache: KeyValueCache): Pointer {
    const rows = batch.ids.length;
    const size = this.#config.hiddenSize;
    const hidden = this.#embed(batch);
    const rotation = this.#rotation(batch.positions, rows);
    const lastLayer = this.#weights.layers.length - 1;
    this.#weights.layers.forEach((layer, index) => {
      // Nothing reads the last layer's output before `outputFrom`; its keys and values are still needed.
      const from = index === lastLayer ? batch.outputFrom : 0;
      this.#attend(layer, hidden, rotation, batch, from, cache, cache.layer(index));
      if (from === rows) return;
      this.#feedForward(layer, hidden + from * size * 4, rows - from);
      for (const image of batch.images) this.#addDeepStack(image, index, hidden);
    });
    const outputRows = rows - batch.outputFrom;
    const output = this.#scratch.floats('output', Math.max(outputRows, 1) * size);
    const { run } = this.#kernels;
    run.rmsNorm(hidden + batch.outputFrom * size * 4, this.#weights.norm, output, outputRows, size, this.#config.normEpsilon);
    return output;
  }

  /** Logits of hidden rows as `forward` returns them: rows of `logitsStride` floats, valid until the next call. */
  logits(hidden: Pointer, rows: number): Pointer {
    const head = this.#weights.head;
    const logits = this.#scratch.floats('logits', rows * outputStride(head));
    project(this.#kernels.run, head, hidden, logits, rows);
    return logits;
  }

  get logitsStride(): number {
    return outputStride(this.#weights.head);
  }

  #embed(batch: RowBatch): Pointer {
    const size = this.#config.hiddenSize;
    const hidden = this.#scratch.floats('hidden', batch.ids.length * size);
    const { run, memory } = this.#kernels;
    batch.ids.forEach((id, row) => {
      run.unpackRow(this.#weights.embedding.packed, id, size, hidden + row * size * 4);
    });
    for (const { row, count, features, firstToken } of batch.images) {
      memory.move(features.plane(0) + firstToken * size * 4, hidden + row * size * 4, count * size * 4);
    }
    return hidden;
  }

  #rotation(positions: Int32Array, rows: number): { cosines: Pointer; sines: Pointer } {
    const half = this.#axes.length;
    const cosines = this.#scratch.floats('cosines', rows * half);
    const sines = this.#scratch.floats('sines', rows * half);
    const cosineValues = this.#kernels.memory.floats(cosines, rows * half);
    const sineValues = this.#kernels.memory.floats(sines, rows * half);
    for (let row = 0; row < rows; row++) {
      for (let i = 0; i < half; i++) {
        const position = positions[3 * row + (this.#axes[i] ?? 0)] ?? 0;
        this.#rotary.copy(position, i, cosineValues, sineValues, row * half + i);
      }
    }
    return { cosines, sines };
  }

  #attend(
    layer: TextLayer,
    hidden: Pointer,
    rotation: { cosines: Pointer; sines: Pointer },
    batch: RowBatch,
    from: number,
    cache: KeyValueCache,
    cacheStart: Pointer,
  ): void {
    const { run } = this.#kernels;
    const { hiddenSize, heads, keyValueHeads, headWidth, normEpsilon } = this.#config;
    const rows = batch.ids.length;
    const normed = this.#scratch.floats('normed', rows * hiddenSize);
    run.rmsNorm(hidden, layer.inputNorm, normed, rows, hiddenSize, normEpsilon);

    const keys = cacheStart + batch.firstSlot * cache.rowSize * 4;
    project(run, layer.keyValue, normed, keys, rows, cache.rowSize);
    run.normAndRotate(
      keys,
      cache.rowSize,
      rows,
      keyValueHeads,
      headWidth,
      layer.keyNorm,
      normEpsilon,
      rotation.cosines,
      rotation.sines,
    );
    if (from === rows) return;

    const width = heads * headWidth;
    const queries = this.#scratch.floats('queries', rows * width);
    const skipped = from * (headWidth / 2) * 4;
    project(run, layer.query, normed + from * hiddenSize * 4, queries, rows - from);
    run.normAndRotate(
      queries,
      width,
      rows - from,
      heads,
      headWidth,
      layer.queryNorm,
      normEpsilon,
      rotation.cosines + skipped,
      rotation.sines + skipped,
    );
    const mixed = this.#mix(queries, batch, from, cache, cacheStart);
    projectOnto(run, layer.attentionOutput, mixed, hidden + from * hiddenSize * 4, rows - from);
  }

  /** Attention of rows from `from` on, block by block. */
  #mix(queries: Pointer, batch: RowBatch, from: number, cache: KeyValueCache, cacheStart: Pointer): Pointer {
    const { run } = this.#kernels;
    const { heads, keyValueHeads, headWidth } = this.#config;
    const width = heads * headWidth;
    const mixed = this.#scratch.floats('mixed', batch.ids.length * width);
    const longest = Math.max(...batch.blocks.map((block) => block.prefixRows + block.rows));
    const scores = this.#scratch.floats('scores', 2 * (longest + 8));
    const values = keyValueHeads * headWidth * 4;
    let start = 0;
    for (const { rows, prefixRows } of batch.blocks) {
      const skipped = Math.max(0, from - start);
      if (skipped < rows) {
        const at = (start + skipped - from) * width * 4;
        const branch = cacheStart + (batch.firstSlot + start) * cache.rowSize * 4;
        run.attention(
          queries + at,
          width,
          mixed + at,
          width,
          rows - skipped,
          heads,
          heads / keyValueHeads,
          headWidth,
          1 / Math.sqrt(headWidth),
          cacheStart,
          cacheStart + values,
          prefixRows,
          branch,
          branch + values,
          cache.rowSize,
          1,
          skipped,
          scores,
        );
      }
      start += rows;
    }
    return mixed;
  }

  #feedForward(layer: TextLayer, hidden: Pointer, rows: number): void {
    const { run } = this.#kernels;
    const { hiddenSize, feedForwardSize, normEpsilon } = this.#config;
    const normed = this.#scratch.floats('normed', rows * hiddenSize);
    const gateUp = this.#scratch.floats('gateUp', rows * 2 * feedForwardSize);
    const gated = this.#scratch.floats('gated', rows * feedForwardSize);
    run.rmsNorm(hidden, layer.feedForwardNorm, normed, rows, hiddenSize, normEpsilon);
    project(run, layer.gateUp, normed, gateUp, rows);
    run.swiglu(gateUp, gated, rows, feedForwardSize);
    projectOnto(run, layer.down, gated, hidden, rows);
  }

  #addDeepStack(image: ImageRows, layer: number, hidden: Pointer): void {
    if (layer + 1 >= image.features.planes) return;
    const size = this.#config.hiddenSize;
    const source = image.features.plane(layer + 1) + image.firstToken * size * 4;
    this.#kernels.run.addInPlace(hidden + image.row * size * 4, source, image.count * size);
  }
}
