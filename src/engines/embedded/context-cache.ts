// Brings the cache of a context up to date: what is cached of it is kept, copied from a shared prefix or moved from a scored branch;
// only the rest is computed. Images are encoded when their rows are; features are not kept for other calls or trajectories, because
// an image's rows are computed once anyway and the work counted must not depend on which trajectory came first.
import { EngineError } from '../../errors.js';
import { imageTokenGrid } from '../../media/geometry.js';
import type { Image, TokenContext, Usage } from '../../types.js';
import type { ModelConfig } from './checkpoint-config.js';
import { encodeImage } from './image-encoder.js';
import type { Kernels, Pointer } from './kernels.js';
import { idsBefore, imagesWithin, type Layout, layoutContext } from './layout.js';
import { type CachedSequence, commonPrefix, type SequenceKey } from './sequence.js';
import type { SequenceStore } from './sequence-store.js';
import type { TextModel } from './text-model.js';
import type { ImageFeatures, VisionTower } from './vision-tower.js';

/** Called between chunks and between generated tokens; throws to stop the work. */
export type CheckAbort = () => void;

/** A context that was checked and laid out. */
export interface LaidOutContext extends SequenceKey {
  readonly layout: Layout;
  readonly images: readonly Image[];
}

export interface ContextCacheParts {
  readonly config: ModelConfig;
  readonly kernels: Kernels;
  readonly text: TextModel;
  readonly vision: VisionTower;
  readonly store: SequenceStore;
  /** Positions computed between two checks for an abort. */
  readonly chunkTokens: number;
}

export class ContextCache {
  readonly #parts: ContextCacheParts;

  constructor(parts: ContextCacheParts) {
    this.#parts = parts;
  }

  /** Throws an EngineError unless the context is sound and leaves room for `toCome` further positions. */
  layOut(context: TokenContext, toCome: number): LaidOutContext {
    const { imageTokenId, pixels, text } = this.#parts.config;
    const where = `trajectory ${context.trajectory}`;
    refuseUnknownIds(context.ids, text.vocabularySize);
    const grids = context.images.map(({ sha256, width, height }) => ({ sha256, ...imageTokenGrid(width, height, pixels) }));
    const layout = layoutContext(context.ids, grids, imageTokenId);
    if (layout.length === 0) throw new EngineError('the context is empty', { where });
    if (layout.length !== context.length) {
      throw new EngineError('the context miscounts its positions', {
        where,
        expected: `${layout.length}`,
        found: `${context.length}`,
      });
    }
    if (layout.length + toCome > text.contextLength) {
      throw new EngineError('the context is too long for the model', {
        where,
        expected: `at most ${text.contextLength} positions`,
        found: `${layout.length} and ${toCome} to come`,
      });
    }
    return { layout, ids: context.ids, imageHashes: context.images.map(({ sha256 }) => sha256), images: context.images };
  }

  /** Computes whatever of the context is not cached, chunk by chunk. Afterwards the sequence is exactly the context. */
  async extend(sequence: CachedSequence, context: LaidOutContext, check: CheckAbort): Promise<Usage> {
    const { store, chunkTokens, config } = this.#parts;
    const { layout, ids } = context;
    const start = this.#reuse(sequence, context);
    const features = new Map<string, ImageFeatures>();
    try {
      store.reserve(sequence, layout.length);
      for (let row = start; row < layout.length; ) {
        check();
        const end = Math.min(row + chunkTokens, layout.length);
        await this.#encodeImages(context, row, end, features);
        const hidden = this.#runChunk(sequence, context, row, end, features);
        // A chunk may end inside an image; only whole ids count as cached should the next chunk fail.
        const sent = end === layout.length ? ids.length : idsBefore(layout, end);
        const lastHidden = end === layout.length ? this.copyHidden(hidden) : null;
        sequence.commit(context, sent, layout.starts[sent] ?? 0, lastHidden, config.imageTokenId);
        row = end;
      }
    } finally {
      for (const feature of features.values()) feature.free();
    }
    return {
      promptTokens: layout.length,
      cachedTokens: start,
      computedTokens: layout.length - start,
      imagesEncoded: features.size,
    };
  }

  /** The hidden state of one row, out of the kernels' memory. */
  copyHidden(hidden: Pointer): Float32Array {
    return this.#parts.kernels.memory.floats(hidden, this.#parts.config.text.hiddenSize).slice();
  }

  /** Whether a sequence is cached of exactly this context. */
  equals(sequence: CachedSequence, context: LaidOutContext): boolean {
    return sequence.ids.length === context.ids.length && this.#shared(sequence, context) === context.ids.length;
  }

  /** Cuts the sequence down to what it shares with the context, or replaces it by a longer shared prefix; returns the rows kept. */
  #reuse(sequence: CachedSequence, context: LaidOutContext): number {
    const { store, config } = this.#parts;
    const { layout, ids } = context;
    if (this.#shared(sequence, context) === sequence.ids.length) sequence.adoptBranch(context);
    sequence.branches = [];
    let sent = this.#shared(sequence, context);
    let lastHidden = sent === sequence.ids.length ? sequence.lastHidden : null;
    for (const pinned of store.pinned) {
      const shared = this.#shared(pinned, context);
      if (shared <= sent) continue;
      sequence.commit(context, 0, 0, null, config.imageTokenId);
      store.reserve(sequence, layout.length);
      sequence.cache.copyPrefix(pinned.cache, layout.starts[shared] ?? 0);
      sent = shared;
      lastHidden = shared === pinned.ids.length ? pinned.lastHidden : null;
    }
    // What follows a fully cached context depends on its last hidden state: without it, its last id is computed again.
    if (sent === ids.length && lastHidden === null) sent -= 1;
    const rows = layout.starts[sent] ?? 0;
    sequence.commit(context, sent, rows, sent === ids.length ? lastHidden : null, config.imageTokenId);
    return rows;
  }

  async #encodeImages(context: LaidOutContext, row: number, end: number, features: Map<string, ImageFeatures>): Promise<void> {
    for (const { image } of imagesWithin(context.layout, row, end)) {
      const picture = context.images[image];
      if (picture === undefined || features.has(picture.sha256)) continue;
      features.set(picture.sha256, await encodeImage(picture, this.#parts.vision, this.#parts.config.pixels));
    }
  }

  /** Rows row … end - 1 behind the rows before; returns the last row's hidden state where it is the context's last. */
  #runChunk(
    sequence: CachedSequence,
    { layout, ids, imageHashes }: LaidOutContext,
    row: number,
    end: number,
    features: ReadonlyMap<string, ImageFeatures>,
  ): Pointer {
    const rowIds = new Array<number>(end - row).fill(this.#parts.config.imageTokenId);
    for (let sent = idsBefore(layout, row); sent < ids.length && (layout.starts[sent] ?? 0) < end; sent++) {
      const at = (layout.starts[sent] ?? 0) - row;
      if (at >= 0) rowIds[at] = ids[sent] ?? 0;
    }
    const images = imagesWithin(layout, row, end).map(({ image, from, to, firstToken }) => {
      const encoded = features.get(imageHashes[image] ?? '');
      if (encoded === undefined) throw new EngineError('an image was not encoded before its rows');
      return { row: from - row, count: to - from, features: encoded, firstToken };
    });
    return this.#parts.text.forward(
      {
        ids: rowIds,
        positions: layout.positions.subarray(3 * row, 3 * end),
        images,
        firstSlot: row,
        blocks: [{ rows: end - row, prefixRows: row }],
        outputFrom: end === layout.length ? end - row - 1 : end - row,
      },
      sequence.cache,
    );
  }

  #shared(a: SequenceKey, b: SequenceKey): number {
    return commonPrefix(a, b, this.#parts.config.imageTokenId);
  }
}

export function refuseUnknownIds(ids: readonly number[], vocabularySize: number): void {
  const unknown = ids.find((id) => !(Number.isInteger(id) && id >= 0 && id < vocabularySize));
  if (unknown !== undefined) {
    throw new EngineError('a token id is not in the vocabulary', { expected: `0 to ${vocabularySize - 1}`, found: `${unknown}` });
  }
}
