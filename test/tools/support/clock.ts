import type { Clock } from '../../../src/tools/clock.js';

/** Real time, but nobody waits: the waits asked for are kept. */
export function impatientClock(): Clock & { readonly waits: number[] } {
  const waits: number[] = [];
  return {
    waits,
    now: Date.now,
    random: () => 0.5,
    async sleep(durationMs, signal) {
      signal?.throwIfAborted();
      waits.push(durationMs);
    },
  };
}
