// What one run may ask of a provider: so many calls a second, so many paid calls at all.
import type { Clock } from '../clock.js';
import { ToolStopError } from '../errors.js';

export interface RateLimit {
  /** Resolves when the caller's turn has come. */
  wait(signal?: AbortSignal): Promise<void>;
}

/** Turns are evenly spaced, in the order asked for. */
export function createRateLimit(requestsPerSecond: number, clock: Clock): RateLimit {
  const spacingMs = 1000 / requestsPerSecond;
  let nextTurn = 0;
  return {
    async wait(signal) {
      const now = clock.now();
      const turn = Math.max(now, nextTurn);
      nextTurn = turn + spacingMs;
      if (turn > now) await clock.sleep(turn - now, signal);
    },
  };
}

export interface Budget {
  /** Takes one call before it is made, so that calls in flight cannot overrun the cap. Throws ToolStopError when none is left. */
  take(provider: string): void;
  /** The provider answered that it did not do the work, so it does not bill. */
  giveBack(provider: string): void;
  /** Paid calls so far, by provider. */
  spent(): ReadonlyMap<string, number>;
}

export function createBudget(maxPaidCalls: number | null): Budget {
  const calls = new Map<string, number>();
  const add = (provider: string, count: number): void => {
    calls.set(provider, (calls.get(provider) ?? 0) + count);
  };
  return {
    take(provider) {
      const total = [...calls.values()].reduce((sum, count) => sum + count, 0);
      if (maxPaidCalls !== null && total >= maxPaidCalls) {
        throw new ToolStopError('the budget of paid calls is spent', {
          where: provider,
          expected: `at most ${maxPaidCalls} calls`,
          remedy: 'Everything so far is kept; raise the cap and resume the run.',
        });
      }
      add(provider, 1);
    },
    giveBack: (provider) => add(provider, -1),
    spent: () => calls,
  };
}
