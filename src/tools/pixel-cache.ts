// Decoded pictures, kept while they fit: zooming into one picture several times decodes it once.
import type { Channels } from 'sharp';

export interface Pixels {
  /** height x width x channels bytes. */
  readonly data: Uint8Array;
  readonly width: number;
  readonly height: number;
  readonly channels: Channels;
}

export interface PixelCache {
  /** Equal keys share one decoding; a failed one is not kept. */
  get(key: string, decode: () => Promise<Pixels>): Promise<Pixels>;
}

/** Forgets what was used longest ago once the pictures take more than `maxBytes`; one that never fits is not kept. */
export function createPixelCache(maxBytes: number): PixelCache {
  // A Map iterates in insertion order: re-inserting on use puts the oldest first.
  const kept = new Map<string, Promise<Pixels>>();
  const sizes = new Map<string, number>();
  const forget = (key: string): void => {
    kept.delete(key);
    sizes.delete(key);
  };
  const shrink = (): void => {
    const total = (): number => [...sizes.values()].reduce((sum, size) => sum + size, 0);
    for (const key of [...kept.keys()]) {
      if (total() <= maxBytes) return;
      forget(key);
    }
  };
  return {
    async get(key, decode) {
      const present = kept.get(key);
      const pixels = present ?? decode();
      kept.delete(key);
      kept.set(key, pixels);
      if (present) return present;
      try {
        const decoded = await pixels;
        if (kept.get(key) === pixels) sizes.set(key, decoded.data.length);
        shrink();
        return decoded;
      } catch (error) {
        if (kept.get(key) === pixels) forget(key);
        throw error;
      }
    },
  };
}
