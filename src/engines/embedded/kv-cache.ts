// Keys and values of one token sequence: per layer `capacity` rows, a row holding all key heads and then all value heads.
import type { TextConfig } from './checkpoint-config.js';
import type { Pointer } from './kernels.js';
import type { LinearMemory } from './memory.js';

const SMALLEST_CAPACITY = 128;

export class KeyValueCache {
  readonly #memory: LinearMemory;
  readonly #layers: number;
  /** Floats of one row in one layer. */
  readonly rowSize: number;
  #pointer: Pointer = 0;
  #capacity = 0;

  constructor(memory: LinearMemory, text: TextConfig) {
    this.#memory = memory;
    this.#layers = text.layers;
    this.rowSize = 2 * text.keyValueHeads * text.headWidth;
  }

  /** Rows that fit without growing. */
  get capacity(): number {
    return this.#capacity;
  }

  /** The first row of a layer; valid until the next `reserve`. */
  layer(index: number): Pointer {
    return this.#pointer + index * this.#capacity * this.rowSize * 4;
  }

  /** Makes room for `rows` rows and keeps the first `used`. */
  reserve(rows: number, used: number): void {
    if (rows <= this.#capacity) return;
    const capacity = capacityFor(rows);
    const pointer = this.#memory.allocate(this.#layers * capacity * this.rowSize * 4);
    for (let layer = 0; layer < this.#layers; layer++) {
      this.#memory.move(this.layer(layer), pointer + layer * capacity * this.rowSize * 4, used * this.rowSize * 4);
    }
    this.free();
    this.#pointer = pointer;
    this.#capacity = capacity;
  }

  /** Moves rows within this cache: the winner's branch next to its prefix. */
  moveRows(from: number, to: number, count: number): void {
    for (let layer = 0; layer < this.#layers; layer++) {
      const start = this.layer(layer);
      this.#memory.move(start + from * this.rowSize * 4, start + to * this.rowSize * 4, count * this.rowSize * 4);
    }
  }

  /** Copies the first `count` rows of another sequence: a prefix that both share. */
  copyPrefix(source: KeyValueCache, count: number): void {
    for (let layer = 0; layer < this.#layers; layer++) {
      this.#memory.move(source.layer(layer), this.layer(layer), count * this.rowSize * 4);
    }
  }

  free(): void {
    if (this.#capacity > 0) this.#memory.free(this.#pointer);
    this.#capacity = 0;
  }
}

/** Doubling from a small start: growth copies are rare and slack is at most half. */
export function capacityFor(rows: number): number {
  let capacity = SMALLEST_CAPACITY;
  while (capacity < rows) capacity *= 2;
  return capacity;
}
