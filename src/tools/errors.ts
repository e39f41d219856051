// Errors of the tool layer beside those of the contract.
import { type ErrorFacts, SsrError, ToolError } from '../errors.js';

/**
 * No further question can do better, so the run stops instead of counting failures as wrong answers: the budget is spent, a key is
 * refused, or a strict replay lacks a recording. Not a ToolError: it must not end one trajectory as `tool-error` and let the next begin.
 */
export class ToolStopError extends SsrError {
  override readonly name: string = 'ToolStopError';
}

/** A replay was asked for something that was never recorded; nothing may stand in for it. */
export class MissingRecordingError extends ToolError {
  override readonly name: string = 'MissingRecordingError';
}

/** A back end answered, but not with an answer; the reply is kept for the record. */
export class ReplyError extends ToolError {
  override readonly name: string = 'ReplyError';
  readonly replies: readonly RawReply[];

  constructor(summary: string, facts: ErrorFacts, replies: readonly RawReply[]) {
    super(summary, facts);
    this.replies = replies;
  }
}

/** What came over the network, as it came (decompressed). */
export interface RawReply {
  readonly url: string;
  readonly status: number;
  readonly mediaType: string;
  readonly bytes: Uint8Array;
}
