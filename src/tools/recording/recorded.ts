// Around every provider: equal calls are shared, answers recorded or replayed, all of it counted.
//   live    ask                     record  the recorded answer, else ask and record whatever comes
//   replay  what was recorded: the answer, the empty list or the failure; a miss is a tool error     strict  a miss stops the run
import { type SsrError, ToolError } from '../../errors.js';
import type { Image } from '../../types.js';
import type { Clock } from '../clock.js';
import { MissingRecordingError, type RawReply, ReplyError, ToolStopError } from '../errors.js';
import type { Provider, ToolSearchResult } from '../provider.js';
import type { Redactor } from '../redaction.js';
import { type Counter, stepOf } from '../statistics.js';
import { type Entry, keyOf, type RecordedRequest, requestOf } from './entry.js';
import { createSharedCalls } from './shared-calls.js';
import type { RecordingStore } from './store.js';

export type Recording =
  | { readonly mode: 'live' }
  | { readonly mode: 'record'; readonly store: RecordingStore }
  | { readonly mode: 'replay' | 'strict'; readonly store: RecordingStore; readonly replayLatency: boolean };

export interface OperationContext {
  readonly recording: Recording;
  readonly counter: Counter;
  readonly redactor: Redactor;
  readonly clock: Clock;
}

export type Operated<S> = (subject: S, signal?: AbortSignal) => Promise<readonly ToolSearchResult[]>;

/** A call's outcome before it is counted; failures travel as values, so that they can be recorded. */
interface Answer {
  readonly results: readonly ToolSearchResult[];
  readonly error: SsrError | null;
  readonly replayed: boolean;
  readonly latencyMs: number;
}

export function operate<S>(provider: Provider<S>, context: OperationContext): Operated<S> {
  const calls = createSharedCalls<Answer>();
  return async (subject, signal) => {
    const request = withoutKeys(requestOf(provider, subject), context.redactor);
    const key = keyOf(request);
    const { value, joined } = await calls.run(
      key,
      (shared) => answer(provider, subject, { request, key }, context, shared),
      signal,
    );
    const { results, error, replayed, latencyMs } = value;
    context.counter.add({
      provider: provider.name,
      step: stepOf(provider.kind),
      outcome: error ? 'failed' : results.length === 0 ? 'empty' : 'answered',
      hit: replayed || joined,
      latencyMs,
    });
    if (error) throw error;
    return results;
  };
}

interface Asked {
  readonly request: RecordedRequest;
  readonly key: string;
}

async function answer<S>(
  provider: Provider<S>,
  subject: S,
  asked: Asked,
  context: OperationContext,
  signal: AbortSignal,
): Promise<Answer> {
  const { recording, clock } = context;
  if (recording.mode === 'live') return (await ask(provider, subject, context, signal)).answer;
  const recorded = await recording.store.read(asked.key);
  if (recording.mode === 'record') {
    if (recorded?.status === 'answered') return restore(recorded, recording.store);
    const { answer: live, raw } = await ask(provider, subject, context, signal);
    return keep(live, raw, asked, context, recording.store);
  }
  if (!recorded) return { results: [], error: missing(asked, recording.mode), replayed: true, latencyMs: 0 };
  if (recording.replayLatency) await clock.sleep(recorded.latencyMs, signal);
  return restore(recorded, recording.store);
}

/** Aborts and mistakes of our own are thrown; a failing tool is an outcome. Results pass on without any key of ours. */
async function ask<S>(
  provider: Provider<S>,
  subject: S,
  { clock, redactor }: OperationContext,
  signal: AbortSignal,
): Promise<{ answer: Answer; raw: readonly RawReply[] }> {
  const started = clock.now();
  const outcome = (results: readonly ToolSearchResult[], error: ToolError | null): Answer => ({
    results,
    error,
    replayed: false,
    latencyMs: clock.now() - started,
  });
  try {
    const { results, raw } = await provider.ask(subject, signal);
    return {
      answer: outcome(
        results.map((result) => withoutSecrets(result, redactor)),
        null,
      ),
      raw,
    };
  } catch (error) {
    if (!(error instanceof ToolError)) throw error;
    return { answer: outcome([], error), raw: error instanceof ReplyError ? error.replies : [] };
  }
}

async function keep(
  live: Answer,
  raw: readonly RawReply[],
  { request, key }: Asked,
  { clock, redactor }: OperationContext,
  store: RecordingStore,
): Promise<Answer> {
  const status = live.error ? 'failed' : live.results.length === 0 ? 'empty' : 'answered';
  const entry: Entry = {
    schema: 1,
    key,
    request,
    status,
    results: await Promise.all(live.results.map((result) => recordResult(result, store))),
    error: live.error && redactor.all(live.error.message),
    raw: await Promise.all(raw.map((reply) => recordReply(reply, redactor, store))),
    latencyMs: live.latencyMs,
    retrievedAt: new Date(clock.now()).toISOString(),
  };
  const held = await store.write(entry);
  // Another process was first: both runs must see the same.
  return held === entry ? live : { ...(await restore(held, store)), replayed: false, latencyMs: live.latencyMs };
}

async function restore(entry: Entry, store: RecordingStore): Promise<Answer> {
  const results = await Promise.all(entry.results.map((result) => restoreResult(result, store)));
  const error = entry.status === 'failed' ? new ToolError(entry.error ?? 'failed when it was recorded') : null;
  return { results, error, replayed: true, latencyMs: entry.latencyMs };
}

function missing({ request, key }: Asked, mode: 'replay' | 'strict'): SsrError {
  const facts = {
    where: `tool store, key ${key}`,
    expected: `a recording of ${request.kind} by ${request.provider} (version ${request.version})`,
    found: `none for ${JSON.stringify(request.subject.slice(0, 200))}`,
    remedy: 'Record it with --tools record, or import the snapshot that holds it.',
  };
  return mode === 'strict' ? new ToolStopError('not recorded', facts) : new MissingRecordingError('not recorded', facts);
}

async function recordResult(
  { thumbnail, ...result }: ToolSearchResult,
  store: RecordingStore,
): Promise<Entry['results'][number]> {
  if (!thumbnail) return result;
  const { mediaType, width, height } = thumbnail;
  return { ...result, thumbnail: { sha256: await store.writeBlob(thumbnail.bytes), mediaType, width, height } };
}

async function restoreResult(recorded: Entry['results'][number], store: RecordingStore): Promise<ToolSearchResult> {
  const { thumbnail, ...rest } = recorded;
  const result = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== undefined)) as ToolSearchResult;
  if (!thumbnail) return result;
  const image: Image = { ...thumbnail, bytes: await store.readBlob(thumbnail.sha256) };
  return { ...result, thumbnail: image };
}

/** Texts are kept without keys; pictures as they are. */
async function recordReply(
  { url, status, mediaType, bytes }: RawReply,
  redactor: Redactor,
  store: RecordingStore,
): Promise<Entry['raw'][number]> {
  const isText = !/^(?:image|audio|video)\//.test(mediaType);
  const kept = isText ? Buffer.from(redactor.all(Buffer.from(bytes).toString('utf8'))) : bytes;
  return { url: redactor.all(url), status, mediaType, sha256: await store.writeBlob(kept) };
}

/** An address asked for may hold a key of ours; other people's parameters tell pages apart and stay. */
function withoutKeys(request: RecordedRequest, { secrets }: Redactor): RecordedRequest {
  return { ...request, subject: secrets(request.subject) };
}

function withoutSecrets(result: ToolSearchResult, { secrets }: Redactor): ToolSearchResult {
  return Object.fromEntries(
    Object.entries(result).map(([name, value]) => [name, typeof value === 'string' ? secrets(value) : value]),
  ) as ToolSearchResult;
}
