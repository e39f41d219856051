// What the engine and its worker threads say to each other. Everything here survives structured cloning.
import { CheckpointError, DataError, EngineError, type SsrError } from '../../errors.js';
import type { Image, Sampling, TokenContext, TokenLogprob } from '../../types.js';
import type { Checkpoint } from './checkpoint.js';

export interface WorkerSettings {
  readonly checkpoint: Checkpoint;
  readonly maxCacheTokens: number;
  readonly chunkTokens: number;
}

/** An image's bytes travel once per trajectory; afterwards the worker knows them by hash. */
export type WireImage = Omit<Image, 'bytes'> & { readonly bytes: Uint8Array | null };

export type WireContext = Omit<TokenContext, 'images'> & { readonly images: readonly WireImage[] };

export type Work =
  | { readonly verb: 'prefill' | 'pin'; readonly context: WireContext }
  | { readonly verb: 'score'; readonly context: WireContext; readonly continuations: readonly (readonly number[])[] }
  | { readonly verb: 'generate'; readonly context: WireContext; readonly sampling: Sampling; readonly streamed: boolean }
  | { readonly verb: 'release'; readonly trajectory: string };

export interface Request {
  readonly call: number;
  readonly work: Work;
  /** One shared int32: not zero once the caller has lost interest. */
  readonly cancelled: SharedArrayBuffer;
}

export type Reply =
  | { readonly kind: 'ready' }
  | { readonly kind: 'failed'; readonly error: WireError }
  | { readonly kind: 'token'; readonly call: number; readonly token: TokenLogprob }
  | { readonly kind: 'result'; readonly call: number; readonly value: unknown }
  | { readonly kind: 'error'; readonly call: number; readonly error: WireError }
  | { readonly kind: 'cancelled'; readonly call: number };

export interface WireError {
  readonly name: string;
  readonly message: string;
  readonly stack: string | null;
}

export class CancelledError extends Error {
  override readonly name = 'CancelledError';
}

export function toWireError(error: unknown): WireError {
  if (error instanceof Error) return { name: error.name, message: error.message, stack: error.stack ?? null };
  return { name: 'Error', message: String(error), stack: null };
}

/** The same kind of error on the caller's side; anything unexpected becomes an EngineError. */
export function fromWireError({ name, message, stack }: WireError): SsrError {
  const kinds: readonly (typeof SsrError)[] = [CheckpointError, DataError, EngineError];
  const Kind = kinds.find((kind) => kind.name === name) ?? EngineError;
  const error = new Kind(message);
  if (stack !== null) error.stack = stack;
  return error;
}
