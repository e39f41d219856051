// The engine's verbs on one thread. Each first brings the context's cache up to date (a cached position is never computed again);
// candidates are then scored in one packed batch behind it, and the rows of the one chosen stay.
import { EngineError } from '../../errors.js';
import { createRandom } from '../../random.js';
import type { Generation, Sampling, Scoring, TokenContext, TokenLogprob, Usage } from '../../types.js';
import type { ModelConfig } from './checkpoint-config.js';
import { type CheckAbort, ContextCache, type LaidOutContext, refuseUnknownIds } from './context-cache.js';
import type { Kernels } from './kernels.js';
import { KeyValueCache } from './kv-cache.js';
import { NextToken } from './next-token.js';
import type { Branch, CachedSequence } from './sequence.js';
import { SequenceStore } from './sequence-store.js';
import { TextModel } from './text-model.js';
import { VisionTower } from './vision-tower.js';
import type { Weights } from './weights.js';

export interface RunnerOptions {
  /** Cached positions over all trajectories. */
  readonly maxCacheTokens: number;
  /** Positions computed between two checks for an abort. */
  readonly chunkTokens: number;
}

export class Runner {
  readonly #config: ModelConfig;
  readonly #text: TextModel;
  readonly #store: SequenceStore;
  readonly #contexts: ContextCache;
  readonly #nextToken: NextToken;

  constructor(config: ModelConfig, weights: Weights, kernels: Kernels, { maxCacheTokens, chunkTokens }: RunnerOptions) {
    this.#config = config;
    this.#text = new TextModel(config.text, weights.text, kernels);
    this.#store = new SequenceStore(() => new KeyValueCache(kernels.memory, config.text), maxCacheTokens);
    const vision = new VisionTower(config.vision, weights.vision, kernels);
    this.#contexts = new ContextCache({ config, kernels, text: this.#text, vision, store: this.#store, chunkTokens });
    this.#nextToken = new NextToken(this.#text, kernels, config.text.hiddenSize, config.text.vocabularySize);
  }

  async prefill(context: TokenContext, check: CheckAbort): Promise<Usage> {
    const laidOut = this.#contexts.layOut(context, 0);
    return this.#contexts.extend(this.#store.of(context.trajectory), laidOut, check);
  }

  /** Computes a prefix that later trajectories start from; a prefix pinned before costs nothing. */
  async pin(context: TokenContext, check: CheckAbort): Promise<Usage> {
    const laidOut = this.#contexts.layOut(context, 0);
    const { length } = laidOut.layout;
    if (this.#store.pinned.some((pinned) => this.#contexts.equals(pinned, laidOut))) {
      return { promptTokens: length, cachedTokens: length, computedTokens: 0, imagesEncoded: 0 };
    }
    const sequence = this.#store.create();
    const usage = await this.#contexts.extend(sequence, laidOut, check);
    this.#store.pin(sequence);
    return usage;
  }

  async score(context: TokenContext, continuations: readonly (readonly number[])[], check: CheckAbort): Promise<Scoring> {
    for (const ids of continuations) this.#refuseBadContinuation(ids);
    const longest = Math.max(0, ...continuations.map((ids) => ids.length));
    const laidOut = this.#contexts.layOut(context, longest);
    const sequence = this.#store.of(context.trajectory);
    const usage = await this.#contexts.extend(sequence, laidOut, check);
    check();
    const rows = continuations.length === 0 ? [] : this.#scoreBranches(sequence, laidOut, continuations);
    const computedTokens = usage.computedTokens + rows.flat().length;
    return { rows, usage: { ...usage, computedTokens } };
  }

  async generate(
    context: TokenContext,
    sampling: Sampling,
    check: CheckAbort,
    onToken: (token: TokenLogprob) => void = () => {},
  ): Promise<Generation> {
    const laidOut = this.#contexts.layOut(context, sampling.maxNewTokens);
    const sequence = this.#store.of(context.trajectory);
    const usage = await this.#contexts.extend(sequence, laidOut, check);
    const random = createRandom(sampling.seed);
    const tokens: TokenLogprob[] = [];
    while (tokens.length < sampling.maxNewTokens && !sampling.stopIds.includes(tokens.at(-1)?.id ?? -1)) {
      check();
      const previous = tokens.at(-1);
      if (previous !== undefined) this.#append(sequence, previous.id, laidOut.layout.nextPosition + tokens.length - 1);
      const token = this.#nextToken.draw(lastHiddenOf(sequence), sampling, random);
      tokens.push(token);
      onToken(token);
    }
    // The last token is drawn but not run: the next prefill computes it, once, together with what follows.
    const computedTokens = usage.computedTokens + Math.max(0, tokens.length - 1);
    const finishReason = sampling.stopIds.includes(tokens.at(-1)?.id ?? -1) ? 'stop' : 'length';
    return { tokens, finishReason, usage: { ...usage, computedTokens } };
  }

  release(trajectory: string): void {
    this.#store.release(trajectory);
  }

  /** One batch for all continuations: each sees the context and itself, and its positions start where the context ends. */
  #scoreBranches(
    sequence: CachedSequence,
    { layout }: LaidOutContext,
    continuations: readonly (readonly number[])[],
  ): TokenLogprob[][] {
    const ids = continuations.flat();
    const firsts = this.#nextToken.logprobs(
      lastHiddenOf(sequence),
      continuations.map(([id]) => id ?? 0),
    );
    const positions = continuations.flatMap((branch) => branch.flatMap((_, i) => Array<number>(3).fill(layout.nextPosition + i)));
    this.#store.reserve(sequence, layout.length + ids.length);
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
    const rowBytes = this.#config.text.hiddenSize * 4;
    let row = 0;
    const rows = continuations.map((branch, index) => {
      const logprobs = [firsts[index] ?? Number.NaN, ...this.#nextToken.logprobsAlong(hidden + row * rowBytes, branch)];
      const lastHidden = this.#contexts.copyHidden(hidden + (row + branch.length - 1) * rowBytes);
      branches.push({ ids: branch, slot: layout.length + row, lastHidden });
      row += branch.length;
      return branch.map((id, i) => ({ id, logprob: logprobs[i] ?? Number.NaN }));
    });
    sequence.branches = branches;
    return rows;
  }

  /** Runs one generated token behind the sequence. */
  #append(sequence: CachedSequence, id: number, position: number): void {
    const row = sequence.rows;
    this.#store.reserve(sequence, row + 1);
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
    sequence.append(id, this.#contexts.copyHidden(hidden));
  }

  #refuseBadContinuation(ids: readonly number[]): void {
    refuseUnknownIds(ids, this.#config.text.vocabularySize);
    if (ids.length === 0) throw new EngineError('a continuation is empty', { expected: 'at least one token' });
    if (ids.includes(this.#config.imageTokenId))
      throw new EngineError('a continuation holds an image token', { expected: 'text only' });
  }
}

function lastHiddenOf({ lastHidden }: CachedSequence): Float32Array {
  if (lastHidden === null) throw new EngineError('the last hidden state of a context is missing');
  return lastHidden;
}
