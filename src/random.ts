// Seeded random numbers: one small generator, so that a run is a function of its seed on every machine.
import { createHash } from 'node:crypto';

/** Uniform numbers in [0, 1) from a 32-bit seed (sfc32, seeded by SplitMix32 steps of the seed). */
export function createRandom(seed: number): () => number {
  let [a, b, c] = [mix(seed + 1), mix(seed + 2), mix(seed + 3)];
  let counter = 1;
  const next = (): number => {
    const sum = (((a + b) | 0) + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + sum) | 0;
    return (sum >>> 0) / 4294967296;
  };
  for (let i = 0; i < 12; i++) next();
  return next;
}

/** A 32-bit seed for one named use of a run's seed, so that questions do not share a stream and order does not matter. */
export function deriveSeed(seed: number, ...names: readonly string[]): number {
  return createHash('sha256')
    .update(JSON.stringify([seed, ...names]))
    .digest()
    .readUInt32LE(0);
}

function mix(value: number): number {
  let z = Math.imul(value, 0x9e3779b9) | 0;
  z = Math.imul(z ^ (z >>> 16), 0x21f0aaad);
  z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
  return (z ^ (z >>> 15)) | 0;
}
