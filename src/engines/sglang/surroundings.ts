// The real clock, timer and chance; everything else gets them handed in.
import { performance } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import type { Surroundings } from './http.js';

export const REAL_SURROUNDINGS: Surroundings = {
  clock: () => performance.now(),
  now: () => Date.now(),
  sleep: (ms, signal) =>
    delay(ms, undefined, signal && { signal }).catch((error: unknown) => {
      signal?.throwIfAborted(); // the timer rejects with an error of its own
      throw error;
    }),
  after: (ms, action) => {
    const timer = setTimeout(action, ms);
    return () => clearTimeout(timer);
  },
  random: () => Math.random(),
};
