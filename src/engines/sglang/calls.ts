// What one engine call asks of a server and what it cost: the record that a caller may keep beside the result.
import type { IdsPieces } from './body.js';
import type { GenerateReply, SamplingParameters } from './protocol.js';

export type Verb = 'prefill' | 'score' | 'generate';

/** One engine call, one or several prompts with the same pictures. */
export interface Call {
  readonly verb: Verb;
  readonly trajectory: string;
  /** Data-parallel replica that holds the trajectory's cache; null where there is only one. */
  readonly replica: number | null;
  /** The ids of each row. */
  readonly rows: readonly IdsPieces[];
  readonly images: readonly Uint8Array[];
  readonly sampling: SamplingParameters;
  readonly returnLogprob: boolean;
  readonly logprobStart?: number;
  /** Asks for the expanded ids as the server saw them (of the first row). */
  readonly echo: boolean;
  readonly idempotent: boolean;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

export interface CallResult {
  /** In row order. */
  readonly replies: readonly GenerateReply[];
  readonly cost: CallCost;
}

export interface CallCost {
  /** HTTP requests that counted, and all that were sent. */
  readonly requests: number;
  readonly attempts: number;
  /** From the call to its last reply. */
  readonly totalMs: number;
  /** Most that one request waited for the client's own budget; no part of a model's latency. */
  readonly queueMs: number;
  /** Most that one request spent in failed sends and the pauses between; no part of a model's latency. */
  readonly retryMs: number;
  readonly imagesSent: number;
  readonly imageBytes: number;
  readonly bytesUploaded: number;
}

/** Client time and server time of one call, side by side. */
export interface CallRecord extends CallCost {
  readonly url: string;
  readonly verb: Verb;
  readonly trajectory: string;
  /** From the server's receipt of the first row to the end of the last; null where it does not say. */
  readonly serverMs: number | null;
  /** From the server's receipt of the first row until the last one went to the scheduler; null where it does not say. */
  readonly dispatchMs: number | null;
  /** From the first row's entry into the model to the end of the last prefill (needs --enable-metrics); null where unknown. */
  readonly forwardMs: number | null;
  readonly promptTokens: number;
  readonly cachedTokens: number;
  readonly newTokens: number;
  readonly weights: string | null;
}

/** The server's own times over all rows. They overlap, so they are never summed. */
export function serverTimes(replies: readonly GenerateReply[]): Pick<CallRecord, 'serverMs' | 'dispatchMs' | 'forwardMs'> {
  const metas = replies.map(({ meta_info }) => meta_info);
  const received = metas.map((meta) => meta.request_received_ts);
  const whole = span(
    received,
    metas.map((meta) => meta.request_finished_ts),
  );
  const latencies = metas.map((meta) => meta.e2e_latency).filter((value) => typeof value === 'number');
  return {
    serverMs: whole ?? (latencies.length === 0 ? null : Math.max(...latencies) * 1000),
    dispatchMs: span(
      received,
      metas.map((meta) => meta.api_server_dispatch_finish_ts),
    ),
    forwardMs: span(
      metas.map((meta) => meta.forward_entry_time),
      metas.map((meta) => meta.prefill_finished_time),
    ),
  };
}

/** Latest end minus earliest start, seconds in, milliseconds out; null unless every row has both. */
function span(starts: readonly (number | null | undefined)[], ends: readonly (number | null | undefined)[]): number | null {
  const known = (values: readonly (number | null | undefined)[]) =>
    values.filter((value) => typeof value === 'number' && value > 0);
  const [first, last] = [known(starts), known(ends)];
  if (first.length < starts.length || last.length < ends.length || first.length === 0) return null;
  return (Math.max(...(last as number[])) - Math.min(...(first as number[]))) * 1000;
}
