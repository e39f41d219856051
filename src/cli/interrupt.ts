// Ctrl-C once: no further question starts, those in flight end. Twice: requests are aborted and the records kept.
export interface Interrupt {
  /** Aborted by the first signal. */
  readonly drain: AbortSignal;
  /** Aborted by the second. */
  readonly signal: AbortSignal;
  dispose(): void;
}

const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

export function onInterrupt(say: (text: string) => void): Interrupt {
  const [drain, abort] = [new AbortController(), new AbortController()];
  const handle = (): void => {
    if (drain.signal.aborted) {
      say('Stopping now; unfinished questions are recorded as cancelled.');
      abort.abort();
    } else {
      say('Finishing the questions in flight; interrupt again to stop now.');
      drain.abort();
    }
  };
  for (const name of SIGNALS) process.on(name, handle);
  return {
    drain: drain.signal,
    signal: abort.signal,
    dispose: () => {
      for (const name of SIGNALS) process.off(name, handle);
    },
  };
}
