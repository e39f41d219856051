// Work that Ctrl-C ends early: once, it is told to stop and cleans up; twice, the process ends as by default.

const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

/** Resolves with what the work gives, or with null when it ended since it was interrupted. */
export async function stoppable<T>(run: (signal: AbortSignal) => Promise<T>): Promise<T | null> {
  const abort = new AbortController();
  const dispose = (): void => {
    for (const name of SIGNALS) process.off(name, stop);
  };
  const stop = (): void => {
    dispose();
    abort.abort();
  };
  for (const name of SIGNALS) process.on(name, stop);
  try {
    return await run(abort.signal);
  } catch (error) {
    if (abort.signal.aborted) return null;
    throw error;
  } finally {
    dispose();
  }
}
