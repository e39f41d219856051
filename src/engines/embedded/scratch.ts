// Named working buffers that grow to the largest size asked for and are reused by every forward pass.
import type { Pointer } from './kernels.js';
import type { LinearMemory } from './memory.js';

export class Scratch {
  readonly #memory: LinearMemory;
  readonly #buffers = new Map<string, { pointer: Pointer; bytes: number }>();

  constructor(memory: LinearMemory) {
    this.#memory = memory;
  }

  /** At least `count` floats; content is arbitrary, and kept only until the name is asked for again. */
  floats(name: string, count: number): Pointer {
    const bytes = count * 4;
    const buffer = this.#buffers.get(name);
    if (buffer !== undefined && buffer.bytes >= bytes) return buffer.pointer;
    if (buffer !== undefined) this.#memory.free(buffer.pointer);
    const pointer = this.#memory.allocate(bytes);
    this.#buffers.set(name, { pointer, bytes });
    return pointer;
  }
}
