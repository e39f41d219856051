// The engine's verbs on one thread. Each first brings the context's cache up to date (a position that is cached is never computed
// again); candidates are then scored in one packed batch behind it, and the chosen one's rows stay.
import { EngineError } from '../../errors.js';
import { imageTokenGrid } from '../../media/geometry.js';
import { createRandom } from '../../random.js';
import type { Generation, Image, Sampling, Scoring, TokenContext, TokenLogprob, Usage } from '../../types.js';
import type { ModelConfig } from './checkpoint-config.js';
import { encodeImage } from './image-encoder.js';
import type { Kernels, Pointer } from './kernels.js';
import { KeyValueCache } from './kv-cache.js';
import { type Layout, layoutContext } from './layout.js';
import { drawToken } from './sampler.js';
import { type Branch, type CachedSequence, commonPrefix, type SequenceKey } from './sequence.js';
import { SequenceStore } from './sequence-store.js';
import { type ImageRows, TextModel } from './text-model.js';
import { type ImageFeatures, VisionTower } from './vision-tower.js';
import type { Weights } from './weights.js';

/** Logits are made for at most this many rows at once. */
const LOGIT_ROWS = 32;

export interface RunnerOptions {
  /** Cached positions over all trajectories. */
  readonly maxCacheTokens: number;
  /** Positions computed between two checks for an abort. */
  readonly chunkTokens: number;
}

/** Called between chunks and between generated tokens; throws to stop the work. */
export type CheckAbort = () => void;

/** A context checked and laid out, with the sequence that caches it. */
interface Prepared extends SequenceKey {
  readonly sequence: CachedSequence;
  readonly layout: Layout;
  readonly images: readonly Image[];
}

export class Runner {
  readonly #config: ModelConfig;
  readonly #kernels: Kernels;
  readonly #text: TextModel;
  readonly #vision: VisionTower;
  readonly #store: SequenceStore;
  readonly #options: RunnerOptions;

  constructor(config: ModelConfig, weights: Weights, kernels: Kernels, options: RunnerOptions) {
    this.#config = config;
    this.#kernels = kernels;
    this.#text = new TextModel(config.text, weights.text, kernels);
    this.#vision = new VisionTower(config.vision, weights.vision, kernels);
    this.#store = new SequenceStore(() => new KeyValueCache(kernels.memory, config.text), options.maxCacheTokens);
    this.#options = options;
  }

  async prefill(context: TokenContext, check: CheckAbort): Promise<Usage> {
    const prepared = this.#prepare(context, this.#store.of(context.trajectory), context.ids.length);
    return this.#extend(prepared, check);
  }

  /** Computes a prefix that later trajectories start from; a prefix pinned before costs nothing. */
  async pin(context: TokenContext, check: CheckAbort): Promise<Usage> {
    const prepared = this.#prepare(context, this.#store.create(), context.ids.length);
    const { length } = prepared.layout;
    const known = this.#store.pinned.some(
      (pinned) => pinned.ids.length === context.ids.length && this.#shared(pinned, prepared) === context.ids.length,
    );
    if (known) return { promptTokens: length, cachedTokens: length, computedTokens: 0, imagesEncoded: 0 };
    const usage = await this.#extend(prepared, check);
    this.#store.pin(prepared.sequence);
    return usage;
  }

  async score(context: TokenContext, continuations: readonly (readonly number[])[], check: CheckAbort): Promise<Scoring> {
    for (const ids of continuations) this.#refuseBadContinuation(ids);
    const added = continuations.reduce((total, ids) => total + ids.length, 0);
    const longest = Math.max(0, ...continuations.map((ids) => ids.length));
    const prepared = this.#prepare(context, this.#store.of(context.trajectory), context.ids.length, longest);
    const usage = await this.#extend(prepared, check);
    check();
    const rows = this.#scoreBranches(prepared, continuations);
    return { rows, usage: { ...usage, computedTokens: usage.computedTokens + added } };
  }

  async generate(context: TokenContext, sampling: Sampling, check: CheckAbort): Promise<Generation> {
    const prepared = this.#prepare(context, this.#store.of(context.trajectory), context.ids.length, sampling.maxNewTokens);
    const usage = await this.#extend(prepared, check);
    const random = createRandom(sampling.seed);
    const tokens: TokenLogprob[] = [];
    let finishReason: Generation['finishReason'] = 'length';
    while (tokens.length < sampling.maxNewTokens) {
      check();
      if (tokens.length > 0) this.#appendToken(prepared, tokens.at(-1)?.id ?? 0, tokens.length - 1);
      const token = this.#draw(prepared.sequence, sampling, random);
      tokens.push(token);
      if (sampling.stopIds.includes(token.id)) {
        finishReason = 'stop';
        break;
      }
    }
    // The last token is drawn but not run: the next prefill computes it, once, together with what follows.
    const computed = Math.max(0, tokens.length - 1);
    return { tokens, finishReason, usage: { ...usage, computedTokens: usage.computedTokens + computed } };
  }

  release(trajectory: string): void {
    this.#store.release(trajectory);
  }

  /** Checks and lays out the context; finds what is cached of it in the sequence or among the pinned prefixes. */
  #prepare(context: TokenContext, sequence: CachedSequence, _sent: number, reserve = 0): Prepared {
    const { imageTokenId, pixels, text } = this.#config;
    this.#refuseUnknownIds(context.ids);
    const grids = context.images.map(({ sha256, width, height }) => ({ sha256, ...imageTokenGrid(width, height, pixels) }));
    const layout = layoutContext(context.ids, grids, imageTokenId);
    if (layout.length === 0) throw new EngineError('the context is empty', { where: context.trajectory });
    if (layout.length !== context.length) {
      throw new EngineError('the context miscounts its positions', {
        where: context.trajectory,
        expected: `${layout.length}`,
        found: `${context.length}`,
      });
    }
    if (layout.length + reserve > text.contextLength) {
      throw new EngineError('the context is too long for the model', {
        where: context.trajectory,
        expected: `at most ${text.contextLength} positions`,
        found: `${layout.length} + ${reserve} to come`,
      });
    }
    const imageHashes = context.images.map(({ sha256 }) => sha256);
    return { sequence, layout, ids: context.ids, imageHashes, images: context.images };
  }

  /** Computes whatever of the context is not cached, chunk by chunk. Afterwards the sequence is exactly the context. */
  async #extend(prepared: Prepared, check: CheckAbort): Promise<Usage> {
    const { sequence, layout, ids } = prepared;
    const start = this.#reuse(prepared);
    const features = new Map<string, ImageFeatures>();
    try {
      this.#store.reserve(sequence, layout.length);
      for (let row = start; row < layout.length; ) {
        check();
        const end = Math.min(row + this.#options.chunkTokens, layout.length);
        await this.#encodeImages(prepared, row, end, features);
        const hidden = this.#runChunk(prepared, row, end, features);
        const lastHidden = end === layout.length ? this.#copyHidden(hidden) : null;
        const sent = end === layout.length ? ids.length : idsBefore(layout, end);
        sequence.commit(prepared, sent, layout.starts[sent] ?? 0, lastHidden, this.#config.imageTokenId);
        row = end;
      }
      return { promptTokens: layout.length, cachedTokens: start, computedTokens: layout.length - start, imagesEncoded: features.size };
    } finally {
      for (const feature of features.values()) feature.free();
    }
  }

  /** Cuts the sequence down to what it shares with the context, or replaces it by a longer pinned prefix; returns the rows kept. */
  #reuse(prepared: Prepared): number {
    const { sequence, layout, ids } = prepared;
    const { imageTokenId } = this.#config;
    if (this.#shared(sequence, prepared) === sequence.ids.length) sequence.adoptBranch(prepared);
    sequence.branches = [];
    let sent = this.#shared(sequence, prepared);
    let lastHidden = sent === sequence.ids.length ? sequence.lastHidden : null;
    for (const pinned of this.#store.pinned) {
      const shared = this.#shared(pinned, prepared);
      if (shared <= sent) continue;
      sequence.commit(prepared, 0, 0, null, imageTokenId);
      this.#store.reserve(sequence, layout.length);
      sequence.cache.copyPrefix(pinned.cache, layout.starts[shared] ?? 0);
      sent = shared;
      lastHidden = shared === pinned.ids.length ? pinned.lastHidden : null;
    }
    // What follows a fully cached context depends on its last hidden state: without it, its last id is computed again.
    if (sent === ids.length && lastHidden === null) sent -= 1;
    const rows = layout.starts[sent] ?? 0;
    sequence.commit(prepared, sent, rows, sent === ids.length ? lastHidden : null, imageTokenId);
    return rows;
  }

  async #encodeImages({ layout, images }: Prepared, row: number, end: number, features: Map<string, ImageFeatures>): Promise<void> {
    for (const { image } of imagesWithin(layout, row, end)) {
      const picture = images[image];
      if (picture === undefined || features.has(picture.sha256)) continue;
      features.set(picture.sha256, await encodeImage(picture, this.#vision, this.#config.pixels));
    }
  }

  #runChunk(prepared: Prepared, row: number, end: number, features: ReadonlyMap<string, ImageFeatures>): Pointer {
    const { sequence, layout, ids, imageHashes } = prepared;
    const rowIds = new Array<number>(end - row).fill(this.#config.imageTokenId);
    for (let sent = idsBefore(layout, row); sent < ids.length && (layout.starts[sent] ?? 0) < end; sent++) {
      const at = (layout.starts[sent] ?? 0) - row;
      if (at >= 0) rowIds[at] = ids[sent] ?? 0;
    }
    const images: ImageRows[] = imagesWithin(layout, row, end).map(({ image, from, to, firstToken }) => {
      const feature = features.get(imageHashes[image] ?? '');
      if (feature === undefined) throw new EngineError('an image was not encoded before its rows');
      return { row: from - row, count: to - from, features: feature, firstToken };
    });
    return this.#text.forward(
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

  /** One batch for all continuations: each sees the context and itself, its positions restart where the context ends. */
  #scoreBranches({ sequence, layout }: Prepared, continuations: readonly (readonly number[])[]): TokenLogprob[][] {
    if (continuations.length === 0) return [];
    const ids = continuations.flat();
    const first = this.#firstTokenLogprobs(sequence, continuations);
    this.#store.reserve(sequence, layout.length + ids.length);
    const positions = continuations.flatMap((branch) => branch.flatMap((_, i) => Array<number>(3).fill(layout.nextPosition + i)));
    const hidden = this.#text.forward(
      {
        ids,
        positions: Int32Array.from(positions),
        images: [],
        firstSlot: layout.length,
        blocks: continuations.map((branch) => ({ rows: branch.length, prefixRows: layout.length })),
        outputFrom: 0,
      },
      sequence.cache,
    );
    const branches: Branch[] = [];
    let row = 0;
    const scored = continuations.map((branch, index) => {
      const start = hidden + row * this.#config.text.hiddenSize * 4;
      const logprobs = [first[index] ?? Number.NaN, ...this.#logprobsAfter(start, branch)];
      const lastHidden = this.#copyHidden(hidden + (row + branch.length - 1) * this.#config.text.hiddenSize * 4);
      branches.push({ ids: branch, slot: layout.length + row, lastHidden });
      row += branch.length;
      return branch.map((id, i) => ({ id, logprob: logprobs[i] ?? Number.NaN }));
    });
    sequence.branches = branches;
    return scored;
  }

  #firstTokenLogprobs(sequence: CachedSequence, continuations: readonly (readonly number[])[]): number[] {
    const logits = this.#lastLogits(sequence);
    const normaliser = this.#logNormaliser(logits, 1);
    const values = this.#kernels.memory.floats(logits, this.#config.text.vocabularySize);
    return continuations.map(([id]) => (values[id ?? 0] ?? Number.NaN) - normaliser);
  }

  /** ln p of branch tokens 1, 2, … from the hidden states of tokens 0, 1, …. */
  #logprobsAfter(hidden: Pointer, branch: readonly number[]): number[] {
    const logprobs: number[] = [];
    const { hiddenSize, vocabularySize } = this.#config.text;
    for (let row = 0; row < branch.length - 1; row += LOGIT_ROWS) {
      const count = Math.min(LOGIT_ROWS, branch.length - 1 - row);
      const logits = this.#text.logits(hidden + row * hiddenSize * 4, count);
      for (let i = 0; i < count; i++) {
        const line = logits + i * this.#text.logitsStride * 4;
        const id = branch[row + i + 1] ?? 0;
        const logit = this.#kernels.memory.floats(line, vocabularySize)[id] ?? Number.NaN;
        logprobs.push(logit - this.#logNormaliser(line, 1));
      }
    }
    return logprobs;
  }

  #draw(sequence: CachedSequence, sampling: Sampling, random: () => number): TokenLogprob {
    const logits = this.#lastLogits(sequence);
    const values = this.#kernels.memory.floats(logits, this.#config.text.vocabularySize);
    return drawToken(values, sampling, (temperature) => this.#logNormaliser(logits, temperature), random);
  }

  #appendToken({ sequence, layout }: Prepared, id: number, generated: number): void {
    const row = sequence.rows;
    this.#store.reserve(sequence, row + 1);
    const position = layout.nextPosition + generated;
    const hidden = this.#text.forward(
      {
        ids: [id],
        positions: Int32Array.of(position, position, position),
        images: [],
        firstSlot: row,
        blocks: [{ rows: 1, prefixRows: row }],
        outputFrom: 0,
      },
      sequence.cache,
    );
    sequence.ids = [...sequence.ids, id];
    sequence.rows = row + 1;
    sequence.lastHidden = this.#copyHidden(hidden);
  }

  #lastLogits({ lastHidden }: CachedSequence): Pointer {
    if (lastHidden === null) throw new EngineError('the last hidden state of a context is missing');
    const { memory } = this.#kernels;
    this.#lastInput ||= memory.allocate(lastHidden.length * 4);
    memory.floats(this.#lastInput, lastHidden.length).set(lastHidden);
    return this.#text.logits(this.#lastInput, 1);
  }
  #lastInput: Pointer = 0;

  /** ln Σ exp(logit / T) over the vocabulary. */
  #logNormaliser(logits: Pointer, temperature: number): number {
    const { vocabularySize } = this.#config.text;
    const peak = this.#kernels.run.maximum(logits, vocabularySize);
    return peak / temperature + Math.log(this.#kernels.run.sumExp(logits, vocabularySize, peak, 1 / temperature));
  }

  #copyHidden(hidden: Pointer): Float32Array {
    return this.#kernels.memory.floats(hidden, this.#config.text.hiddenSize).slice();
  }

  #shared(a: SequenceKey, b: SequenceKey): number {
    return commonPrefix(a, b, this.#config.imageTokenId);
  }

  #refuseUnknownIds(ids: readonly number[]): void {
    const { vocabularySize } = this.#config.text;
    const unknown = ids.find((id) => !(Number.isInteger(id) && id >= 0 && id < vocabularySize));
    if (unknown !== undefined) {
      throw new EngineError('a token id is not in the vocabulary', { expected: `0 to ${vocabularySize - 1}`, found: `${unknown}` });
    }
  }

  #refuseBadContinuation(ids: readonly number[]): void {
    this.#refuseUnknownIds(ids);
    if (ids.length === 0) throw new EngineError('a continuation is empty', { expected: 'at least one token' });
    if (ids.includes(this.#config.imageTokenId)) throw new EngineError('a continuation holds an image token', { expected: 'text only' });
  }
}

interface ImageSpan {
  readonly image: number;
  readonly from: number;
  readonly to: number;
  readonly firstToken: number;
}

/** The parts of images that lie in rows row … end - 1. */
function imagesWithin({ starts, imageAt }: Layout, row: number, end: number): ImageSpan[] {
  const spans: ImageSpan[] = [];
  imageAt.forEach((image, sent) => {
    const first = starts[sent] ?? 0;
    const from = Math.max(row, first);
    const to = Math.min(end, starts[sent + 1] ?? 0);
    if (image >= 0 && from < to) spans.push({ image, from, to, firstToken: from - first });
  });
  return spans;
}

/** How many sent ids lie wholly before an expanded position. */
function idsBefore({ starts }: Layout, row: number): number {
  let low = 0;
  let high = starts.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((starts[middle] ?? 0) <= row) low = middle;
    else high = middle - 1;
  }
  return low;
}
