// Times the phases of a trajectory by the definitions of method.md section 4, so that the algorithm needs no clock.
import type { Phase, Span, Usage } from '../types.js';

/** Milliseconds from any fixed origin, never going back. */
export type Clock = () => number;

export type PhaseTimes = Record<Phase, number>;

export interface Stopwatch {
  readonly span: Span;
  /** Phase times since the last lap, and all the time that passed in no phase as `orchestration`. */
  lap(): PhaseTimes & { readonly orchestration: number };
}

export function createStopwatch(clock: Clock): Stopwatch {
  let lapStart = clock();
  let phases = noTimes();
  return {
    async span(phase, run) {
      const start = clock();
      let waitedMs = 0;
      try {
        const result = await run();
        waitedMs = waitedMsOf(result);
        return result;
      } finally {
        phases[phase] += clock() - start - waitedMs;
      }
    },
    lap() {
      const now = clock();
      const inPhases = Object.values(phases).reduce((sum, value) => sum + value, 0);
      const times = { ...phases, orchestration: now - lapStart - inPhases };
      lapStart = now;
      phases = noTimes();
      return times;
    },
  };
}

/** What an engine's reply says of time that is not the model's: it then counts as orchestration. */
function waitedMsOf(result: unknown): number {
  const reply = (result ?? {}) as Partial<Usage> & { readonly usage?: Usage };
  return reply.waitedMs ?? reply.usage?.waitedMs ?? 0;
}

function noTimes(): PhaseTimes {
  return { system: 0, prefill: 0, reasoning: 0, action: 0, tool: 0, media: 0 };
}
