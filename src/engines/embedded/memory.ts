// A first-fit allocator over the kernels' linear memory: weights for good, caches that come and go.
import { EngineError } from '../../errors.js';

/** The part of WebAssembly.Memory used here; Node's type declarations have none. */
export interface GrowableMemory {
  readonly buffer: ArrayBuffer;
  grow(pages: number): number;
}

const PAGE_BYTES = 65_536;
/** What a 32-bit WebAssembly memory can address. */
export const ADDRESSABLE_BYTES = 65_536 * PAGE_BYTES;
const ALIGNMENT = 64;

interface FreeRange {
  start: number;
  end: number;
}

export class LinearMemory {
  readonly #memory: GrowableMemory;
  readonly #limitBytes: number;
  /** Sorted by address, never adjacent. */
  readonly #free: FreeRange[] = [];
  readonly #sizes = new Map<number, number>();
  #end: number;

  constructor(memory: GrowableMemory, heapBase: number, limitBytes = ADDRESSABLE_BYTES) {
    this.#memory = memory;
    this.#limitBytes = limitBytes;
    this.#end = roundUp(heapBase, ALIGNMENT);
  }

  /** A 64-byte aligned block; its content is arbitrary. Growth invalidates views taken before. */
  allocate(bytes: number): number {
    const size = roundUp(Math.max(bytes, 1), ALIGNMENT);
    const start = this.#takeFree(size) ?? this.#extend(size);
    this.#sizes.set(start, size);
    return start;
  }

  free(pointer: number): void {
    const size = this.#sizes.get(pointer);
    if (size === undefined) throw new EngineError(`memory at ${pointer} was freed twice or never allocated`);
    this.#sizes.delete(pointer);
    this.#giveBack({ start: pointer, end: pointer + size });
  }

  /** A view of `count` floats, valid until the next allocation. */
  floats(pointer: number, count: number): Float32Array {
    return new Float32Array(this.#memory.buffer, pointer, count);
  }

  /** A view of `count` bytes, valid until the next allocation. */
  bytes(pointer: number, count: number): Uint8Array {
    return new Uint8Array(this.#memory.buffer, pointer, count);
  }

  move(from: number, to: number, bytes: number): void {
    new Uint8Array(this.#memory.buffer).copyWithin(to, from, from + bytes);
  }

  #takeFree(size: number): number | undefined {
    const index = this.#free.findIndex((range) => range.end - range.start >= size);
    const range = this.#free[index];
    if (range === undefined) return undefined;
    const start = range.start;
    range.start += size;
    if (range.start === range.end) this.#free.splice(index, 1);
    return start;
  }

  #extend(size: number): number {
    const start = this.#end;
    const missing = start + size - this.#memory.buffer.byteLength;
    if (start + size > this.#limitBytes) {
      throw new EngineError('out of WebAssembly memory', {
        expected: `at most ${megabytes(this.#limitBytes)} MB in one worker`,
        found: `a need of ${megabytes(start + size)} MB`,
        remedy: 'Use a smaller checkpoint, a smaller cache or shorter contexts',
      });
    }
    if (missing > 0) this.#memory.grow(Math.ceil(missing / PAGE_BYTES));
    this.#end = start + size;
    return start;
  }

  #giveBack(block: FreeRange): void {
    const next = this.#free.findIndex((range) => range.start > block.start);
    const at = next < 0 ? this.#free.length : next;
    this.#free.splice(at, 0, block);
    const after = this.#free[at + 1];
    if (after !== undefined && after.start === block.end) {
      block.end = after.end;
      this.#free.splice(at + 1, 1);
    }
    const before = this.#free[at - 1];
    if (before !== undefined && before.end === block.start) {
      before.end = block.end;
      this.#free.splice(at, 1);
    }
  }
}

export function megabytes(bytes: number): number {
  return Math.ceil(bytes / 1e6);
}

function roundUp(value: number, multiple: number): number {
  return Math.ceil(value / multiple) * multiple;
}
