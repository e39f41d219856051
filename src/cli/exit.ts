// What a finished process says with its exit code; `ssr --help` documents it.
export const EXIT = { ok: 0, usage: 1, engine: 2, errors: 3, data: 4, belowMinimum: 100, interrupted: 130 } as const;

/** How a command tells the process how it ended. */
export interface CommandContext {
  readonly setExitCode: (code: number) => void;
}
