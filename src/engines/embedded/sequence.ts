// What is cached of one token sequence: its ids, their keys and values, and where the candidates scored last lie behind them.
import type { KeyValueCache } from './kv-cache.js';

/** A scored continuation whose rows still lie behind the sequence. */
export interface Branch {
  readonly ids: readonly number[];
  readonly slot: number;
  readonly lastHidden: Float32Array;
}

/** The part of a context that identity is decided on; an image is known by its hash. */
export interface SequenceKey {
  readonly ids: readonly number[];
  readonly imageHashes: readonly string[];
}

export class CachedSequence implements SequenceKey {
  readonly cache: KeyValueCache;
  ids: number[] = [];
  imageHashes: readonly string[] = [];
  /** Expanded positions of `ids`; rows of the cache that hold them. */
  rows = 0;
  /** Normalised hidden state of the last position, from which the next token's logits follow; null when not at hand. */
  lastHidden: Float32Array | null = null;
  branches: readonly Branch[] = [];

  constructor(cache: KeyValueCache) {
    this.cache = cache;
  }

  /** Declares the first `sent` ids of a context, `rows` positions, to be cached. */
  commit(context: SequenceKey, sent: number, rows: number, lastHidden: Float32Array | null, imageTokenId: number): void {
    this.ids = context.ids.slice(0, sent);
    const images = this.ids.reduce((count, id) => count + (id === imageTokenId ? 1 : 0), 0);
    this.imageHashes = context.imageHashes.slice(0, images);
    this.rows = rows;
    this.lastHidden = lastHidden;
  }

  /** One more text token, already in the cache. */
  append(id: number, lastHidden: Float32Array): void {
    this.ids.push(id);
    this.rows += 1;
    this.lastHidden = lastHidden;
  }

  /** If a branch continues this sequence as the context does, moves its rows next to the prefix; forgets all branches. */
  adoptBranch(context: SequenceKey): void {
    const length = this.ids.length;
    let winner: Branch | undefined;
    let matched = 0;
    for (const branch of this.branches) {
      const shared = sharedLength(branch.ids, context.ids, length);
      if (shared > matched) [winner, matched] = [branch, shared];
    }
    this.branches = [];
    if (winner === undefined) return;
    this.cache.moveRows(winner.slot, this.rows, matched);
    this.ids.push(...winner.ids.slice(0, matched));
    this.rows += matched;
    this.lastHidden = matched === winner.ids.length ? winner.lastHidden : null;
  }
}

/** How many leading sent ids two keys share; an image token counts only with the same picture. */
export function commonPrefix(a: SequenceKey, b: SequenceKey, imageTokenId: number): number {
  let image = 0;
  const limit = Math.min(a.ids.length, b.ids.length);
  for (let i = 0; i < limit; i++) {
    if (a.ids[i] !== b.ids[i]) return i;
    if (a.ids[i] === imageTokenId) {
      if (a.imageHashes[image] === undefined || a.imageHashes[image] !== b.imageHashes[image]) return i;
      image += 1;
    }
  }
  return limit;
}

function sharedLength(branch: readonly number[], ids: readonly number[], from: number): number {
  let shared = 0;
  while (shared < branch.length && branch[shared] === ids[from + shared]) shared += 1;
  return shared;
}
