// One root and a few leaves: a surprise carries what was expected, what came, where, and what to do about it.

export interface ErrorFacts {
  /** File, field, tensor or URL the surprise belongs to. */
  readonly where?: string;
  readonly expected?: string;
  readonly found?: string;
  readonly remedy?: string;
  readonly cause?: unknown;
}

/** Root of all errors the project raises on purpose; its message is one line. */
export class SsrError extends Error {
  override readonly name: string = 'SsrError';
  readonly facts: ErrorFacts;

  constructor(summary: string, facts: ErrorFacts = {}) {
    super(describe(summary, facts), facts.cause === undefined ? undefined : { cause: facts.cause });
    this.facts = facts;
  }
}

/** Wrong command line, configuration or library: exit code 1. */
export class UsageError extends SsrError {
  override readonly name: string = 'UsageError';
}

/** Unreadable or inconsistent data: data sets, images, corpora, results folders. Exit code 4. */
export class DataError extends SsrError {
  override readonly name: string = 'DataError';
}

/** A checkpoint that cannot be loaded. Exit code 4. */
export class CheckpointError extends DataError {
  override readonly name: string = 'CheckpointError';
}

/** An engine broke a promise of its contract (or could not be reached). */
export class EngineError extends SsrError {
  override readonly name: string = 'EngineError';
}

/** The engine cannot be reached or has died. Exit code 2. */
export class EngineUnavailableError extends EngineError {
  override readonly name: string = 'EngineUnavailableError';
}

/** A tool failed; the trajectory stops with `tool-error`. */
export class ToolError extends SsrError {
  override readonly name: string = 'ToolError';
}

/** The model asked a tool for something it cannot do; the message is shown to the model, which may go on. */
export class ToolInputError extends SsrError {
  override readonly name: string = 'ToolInputError';
}

/** No verdict could be had. */
export class JudgeError extends SsrError {
  override readonly name: string = 'JudgeError';
}

function describe(summary: string, facts: ErrorFacts): string {
  let message = facts.where === undefined ? summary : `${facts.where}: ${summary}`;
  if (facts.expected !== undefined) message += `; expected ${facts.expected}`;
  if (facts.found !== undefined) message += `, found ${facts.found}`;
  if (facts.remedy !== undefined) message += `${message.endsWith('.') ? '' : '.'} ${facts.remedy}`;
  return message.replace(/\s*\n\s*/g, ' ').replace(/\p{Cc}/gu, ' ');
}
