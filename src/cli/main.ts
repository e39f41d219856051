// The one place that talks to the process: streams, signals, and what an error means as an exit code.
import { CommanderError } from 'commander';
import { DataError, EngineUnavailableError, SsrError, UsageError } from '../errors.js';
import { EXIT } from './exit.js';
import { createProgram } from './program.js';

/** Runs one command line and returns its exit code. */
export async function main(argv: readonly string[]): Promise<number> {
  let exitCode: number = EXIT.ok;
  const program = createProgram({
    setExitCode(code) {
      exitCode = code;
    },
  });
  if (!process.stdout.listeners('error').includes(endQuietly)) process.stdout.on('error', endQuietly);
  try {
    await program.parseAsync([...argv]);
    return exitCode;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
    if (!(error instanceof SsrError)) return reportBug(error);
    process.stderr.write(`ssr: ${error.message}\n`);
    return exitCodeOf(error);
  }
}

/** `ssr show RUN | head` closes the pipe early; that is no failure. */
function endQuietly(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE') throw error;
  process.exit(EXIT.ok);
}

/** One line for users; the stack for those who look into it. */
function reportBug(error: unknown): number {
  const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  process.stderr.write(`ssr: unexpected ${text.replace(/\s+/g, ' ')}. Please report it; SSR_DEBUG=1 shows where it came from.\n`);
  if (process.env.SSR_DEBUG && error instanceof Error) process.stderr.write(`${error.stack}\n`);
  return EXIT.errors;
}

function exitCodeOf(error: SsrError): number {
  if (error instanceof UsageError) return EXIT.usage;
  if (error instanceof EngineUnavailableError) return EXIT.engine;
  if (error instanceof DataError) return EXIT.data;
  return EXIT.errors;
}
