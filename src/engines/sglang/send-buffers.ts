// Request bodies joined in memory that later requests use again: a run sends gigabytes, and a fresh buffer for each body
// would keep the garbage collector busy.
import type { Body } from './body.js';

/** Each piece of a body is a write to the socket, so small bodies are joined; a longer one is not worth the copy. */
const MOST_BYTES_JOINED = 2 * 1024 * 1024;
const MOST_BYTES_KEPT = 128 * 1024 * 1024;
const SMALLEST = 4 * 1024;

export class SendBuffers {
  /** By size, a power of two. */
  readonly #free = new Map<number, Buffer[]>();
  #bytesKept = 0;

  /** The body as one buffer, or null where it should be sent piece by piece. */
  join({ pieces, byteLength }: Body): Buffer | null {
    if (byteLength > MOST_BYTES_JOINED) return null;
    const whole = this.#take(sizeFor(byteLength));
    let at = 0;
    for (const piece of pieces) {
      whole.set(piece, at);
      at += piece.byteLength;
    }
    return whole.subarray(0, byteLength);
  }

  /** Takes a joined body back. Only for one that the server has read whole: the socket may still hold any other. */
  giveBack(joined: Buffer): void {
    const size = sizeFor(joined.byteLength);
    if (this.#bytesKept + size > MOST_BYTES_KEPT) return;
    this.#bytesKept += size;
    const free = this.#free.get(size) ?? [];
    this.#free.set(size, free);
    free.push(Buffer.from(joined.buffer, joined.byteOffset, size));
  }

  #take(size: number): Buffer {
    const known = this.#free.get(size)?.pop();
    if (known === undefined) return Buffer.allocUnsafeSlow(size);
    this.#bytesKept -= size;
    return known;
  }
}

function sizeFor(byteLength: number): number {
  return 2 ** Math.max(Math.log2(SMALLEST), Math.ceil(Math.log2(Math.max(1, byteLength))));
}
