// Interleaved multimodal rotary positions: a text token sits at (p, p, p), an image's token at (start, start + row, start + column).
import type { TextConfig } from './checkpoint-config.js';

/** Cosines and sines of position · θ^(-2i/width) for i < width/2, kept for all positions seen so far. */
export class RotaryTable {
  readonly #frequencies: Float32Array;
  #cosines = new Float32Array(0);
  #sines = new Float32Array(0);

  constructor(theta: number, width: number) {
    // Rounded to float32 at each step, as the reference does.
    this.#frequencies = Float32Array.from(
      { length: width / 2 },
      (_, i) => 1 / Math.fround(theta ** Math.fround((2 * i) / width)),
    );
  }

  /** Copies frequency `index` of `position` into place `at` of both targets. */
  copy(position: number, index: number, cosines: Float32Array, sines: Float32Array, at: number): void {
    const from = position * this.#frequencies.length + index;
    if (from >= this.#cosines.length) this.#extend(position);
    cosines[at] = this.#cosines[from] ?? 0;
    sines[at] = this.#sines[from] ?? 0;
  }

  #extend(position: number): void {
    const half = this.#frequencies.length;
    const positions = Math.max(256, 2 * (position + 1));
    this.#cosines = new Float32Array(positions * half);
    this.#sines = new Float32Array(positions * half);
    for (let p = 0; p < positions; p++) {
      this.#frequencies.forEach((frequency, i) => {
        const angle = Math.fround(p * frequency);
        this.#cosines[p * half + i] = Math.cos(angle);
        this.#sines[p * half + i] = Math.sin(angle);
      });
    }
  }
}

/**
 * For each frequency of a head, which of time (0), height (1) and width (2) drives it: T H W T H W … while H and W have
 * frequencies left, then T.
 */
export function interleavedAxes(text: TextConfig): Uint8Array {
  const axes = new Uint8Array(text.headWidth / 2);
  for (const axis of [1, 2] as const) {
    for (let i: number = axis; i < 3 * text.ropeSections[axis] && i < axes.length; i += 3) axes[i] = axis;
  }
  return axes;
}
