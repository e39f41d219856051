// All sequences cached in one worker: one per trajectory, and pinned prefixes that trajectories share. The rows of all of them
// stay within a budget; the trajectory left alone longest is forgotten first, and merely costs computing again.
import { EngineError } from '../../errors.js';
import { capacityFor, type KeyValueCache } from './kv-cache.js';
import { CachedSequence } from './sequence.js';

/** Distinct shared prefixes kept at once; the oldest goes first. */
const MOST_PINNED = 8;

export class SequenceStore {
  readonly #createCache: () => KeyValueCache;
  readonly #maxRows: number;
  /** In order of last use. */
  readonly #sequences = new Map<string, CachedSequence>();
  readonly #pinned: CachedSequence[] = [];

  constructor(createCache: () => KeyValueCache, maxRows: number) {
    this.#createCache = createCache;
    this.#maxRows = maxRows;
  }

  get pinned(): readonly CachedSequence[] {
    return this.#pinned;
  }

  /** Rows allocated to all sequences. */
  get allocatedRows(): number {
    return [...this.#sequences.values(), ...this.#pinned].reduce((rows, { cache }) => rows + cache.capacity, 0);
  }

  /** The trajectory's sequence, empty at first; counts as a use. */
  of(trajectory: string): CachedSequence {
    const sequence = this.#sequences.get(trajectory) ?? this.create();
    this.#sequences.delete(trajectory);
    this.#sequences.set(trajectory, sequence);
    return sequence;
  }

  create(): CachedSequence {
    return new CachedSequence(this.#createCache());
  }

  pin(sequence: CachedSequence): void {
    this.#pinned.push(sequence);
    if (this.#pinned.length > MOST_PINNED) this.#pinned.shift()?.cache.free();
  }

  release(trajectory: string): void {
    this.#sequences.get(trajectory)?.cache.free();
    this.#sequences.delete(trajectory);
  }

  /** Gives a sequence room for `rows` rows; throws an EngineError when the budget cannot hold them. */
  reserve(sequence: CachedSequence, rows: number): void {
    const { cache } = sequence;
    if (rows <= cache.capacity) return;
    const growth = capacityFor(rows) - cache.capacity;
    for (const [trajectory, other] of this.#sequences) {
      if (this.allocatedRows + growth <= this.#maxRows) break;
      if (other !== sequence) this.release(trajectory);
    }
    if (this.allocatedRows + growth > this.#maxRows) {
      throw new EngineError('the context does not fit the cache', {
        expected: `at most ${this.#maxRows} cached positions in one worker`,
        found: `${rows} for this call beside ${this.allocatedRows - cache.capacity} pinned`,
        remedy: 'Raise maxCacheTokens or shorten the context',
      });
    }
    cache.reserve(rows, sequence.rows);
  }
}
