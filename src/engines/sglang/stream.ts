// A /generate reply as server-sent events: the ids so far after every step, the whole reply at the end.
import { EngineError } from '../../errors.js';
import type { TokenLogprob } from '../../types.js';
import { checkedEntry } from './checks.js';
import { errorMessage, type GenerateReply, generateReplySchema, type LogprobEntry } from './protocol.js';

/**
 * Reads events until `[DONE]` and returns the reply as one that was not streamed; `onToken` gets every token once.
 * `incremental`: the server sends only what is new instead of everything so far.
 */
export function readStream(
  incremental: boolean,
  where: string,
  onToken: (token: TokenLogprob) => void,
): (body: AsyncIterable<Uint8Array>) => Promise<GenerateReply> {
  return async (body) => {
    let ids: readonly number[] = [];
    let logprobs: readonly LogprobEntry[] = [];
    let told = 0;
    let last: GenerateReply | null = null;
    for await (const data of events(body)) {
      if (data === '[DONE]') break;
      last = parseEvent(data, where);
      const [newIds, newLogprobs] = [last.output_ids ?? [], last.meta_info.output_token_logprobs ?? []];
      ids = incremental ? [...ids, ...newIds] : newIds;
      logprobs = incremental ? [...logprobs, ...newLogprobs] : newLogprobs;
      if (ids.length < told) {
        throw new EngineError('the stream lost tokens', { where, expected: `at least ${told} ids`, found: String(ids.length) });
      }
      // Log-probs may lag behind their ids; a token is told when both are there.
      for (; told < Math.min(ids.length, logprobs.length); told++) {
        onToken(checkedEntry(logprobs[told] as LogprobEntry, ids[told] as number, `${where}, new token ${told}`));
      }
    }
    // A cut connection, for the transport to judge.
    if (!last?.meta_info.finish_reason) throw new Error('the event stream ended early');
    return { ...last, output_ids: [...ids], meta_info: { ...last.meta_info, output_token_logprobs: [...logprobs] } };
  };
}

/** Payloads of `data:` lines, however the bytes were cut. */
export async function* events(body: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const piece of body) {
    rest += decoder.decode(piece, { stream: true });
    for (let end = rest.indexOf('\n'); end !== -1; end = rest.indexOf('\n')) {
      const line = rest.slice(0, end).trimEnd();
      rest = rest.slice(end + 1);
      if (line.startsWith('data:')) yield line.slice(5).trimStart();
    }
  }
}

/** A failure during a stream arrives as an event, since the status has long been sent. */
function parseEvent(data: string, where: string): GenerateReply {
  let json: unknown = null;
  try {
    json = JSON.parse(data);
  } catch {
    // reported below
  }
  const parsed = generateReplySchema.safeParse(json);
  if (parsed.success) return parsed.data;
  throw new EngineError('the server failed during the stream', { where, found: errorMessage(data) });
}
