// What every reply must satisfy before it counts: pure functions that turn a wrong alignment, a drifted prompt or a missing
// number into an EngineError. Positions count *expanded* tokens; logprob_start_len S = L - 1 returns the K + 1 entries of
// positions L - 1 … L + K - 1, the first of them null.
import { EngineError } from '../../errors.js';
import type { TokenLogprob } from '../../types.js';
import type { GenerateReply, LogprobEntry } from './protocol.js';

/** Largest rounding error above 0 that a log-probability may show. */
const ABOVE_ZERO = 1e-4;
const DRIFT_REMEDY =
  'The server re-tokenised the prompt or saw other pictures: use SGLang >= 0.5.13 with SGLANG_MM_AVOID_RETOKENIZE=1, no image sizes in --mm-process-config, ' +
  'and give --model the folder it serves.';

/** An id outside the vocabulary kills the server, so none is ever sent. */
export function checkIds(ids: readonly number[], vocabularySize: number, where: string): void {
  const at = ids.findIndex((id) => !Number.isInteger(id) || id < 0 || id >= vocabularySize);
  if (at === -1 && ids.length > 0) return;
  throw new EngineError(ids.length === 0 ? 'no ids to send' : 'an id outside the vocabulary', {
    where: at === -1 ? where : `${where}, position ${at}`,
    expected: `ids in [0, ${vocabularySize})`,
    found: at === -1 ? 'an empty list' : String(ids[at]),
    remedy: 'Tokenizer and served model must belong together.',
  });
}

/** A candidate holds no vision ids, and not the last id of the vocabulary, which replies cannot tell from a picture. */
export function checkContinuation(
  ids: readonly number[],
  vocabularySize: number,
  visionIds: readonly number[],
  where: string,
): void {
  checkIds(ids, vocabularySize, where);
  const forbidden = ids.find((id) => id === vocabularySize - 1 || visionIds.includes(id));
  if (forbidden === undefined) return;
  throw new EngineError('this id cannot be scored by SGLang', {
    where,
    expected: `no vision id (${visionIds.join(', ')}) and not the last of the vocabulary (${vocabularySize - 1})`,
    found: String(forbidden),
  });
}

/** A request can end as `abort` with status 200. */
export function checkFinished(reply: GenerateReply, where: string): 'stop' | 'length' {
  const reason = reply.meta_info.finish_reason;
  if (reason?.type === 'stop' || reason?.type === 'length') return reason.type;
  const status = reason?.status_code ? ` (${reason.status_code})` : '';
  const words = reason?.message ? `: ${reason.message}` : '';
  throw new EngineError('the server ended the request', {
    where,
    expected: 'stop or length',
    found: `${reason?.type ?? 'no reason'}${status}${words}`,
  });
}

/**
 * The server must have seen exactly the prompt that was meant: `positions` expanded tokens, of which the pictures take
 * `positions - sentIds + imageCount` (2.1 and 2.3 of the checks in docs/sglang.md).
 */
export function checkPrompt(
  reply: GenerateReply,
  prompt: { readonly positions: number; readonly sentIds: number; readonly imageCount: number },
  where: string,
): void {
  const { prompt_tokens: found, image_tokens: imageTokens } = reply.meta_info;
  if (typeof imageTokens === 'number' && prompt.imageCount > 0) {
    const textTokens = found - imageTokens + prompt.imageCount;
    if (textTokens !== prompt.sentIds) {
      throw new EngineError('the text of the prompt drifted', {
        where,
        expected: `${prompt.sentIds} ids`,
        found: `${textTokens} (${found} prompt tokens, ${imageTokens} of them for ${prompt.imageCount} pictures)`,
        remedy: DRIFT_REMEDY,
      });
    }
  }
  if (found === prompt.positions) return;
  throw new EngineError('the server counted another prompt', {
    where,
    expected: `${prompt.positions} prompt tokens (${prompt.sentIds} ids with ${prompt.imageCount} pictures)`,
    found: String(found),
    remedy: DRIFT_REMEDY,
  });
}

/** The server's expanded ids, each run of image_pad collapsed to the single one that was sent, must be the ids sent. */
export function checkEcho(echoed: readonly number[], sent: readonly number[], imagePadId: number, where: string): void {
  const collapse = (ids: readonly number[]) => ids.filter((id, i) => id !== imagePadId || ids[i - 1] !== imagePadId);
  const [collapsed, meant] = [collapse(echoed), collapse(sent)];
  const at = meant.findIndex((id, i) => collapsed[i] !== id);
  if (at === -1 && collapsed.length === meant.length) return;
  throw new EngineError('the server saw other ids than were sent', {
    where: at === -1 ? where : `${where}, position ${at}`,
    expected: at === -1 ? `${meant.length} ids` : `id ${meant[at]}`,
    found: at === -1 ? String(collapsed.length) : `id ${collapsed[at]}`,
    remedy: DRIFT_REMEDY,
  });
}

/** The log-probs of `continuation` out of a row scored from position L - 1; `lastId` is the history's last id. */
export function scoredRow(
  reply: GenerateReply,
  continuation: readonly number[],
  lastId: number | null,
  where: string,
): TokenLogprob[] {
  const entries = reply.meta_info.input_token_logprobs;
  if (!entries || entries.length !== continuation.length + 1) {
    throw new EngineError('wrong number of log-probs', {
      where,
      expected: `${continuation.length + 1} (the boundary and one per token)`,
      found: entries ? String(entries.length) : 'none',
    });
  }
  const [boundary, ...tail] = entries as [LogprobEntry, ...LogprobEntry[]];
  if (boundary[0] !== null) {
    throw new EngineError('the log-probs are misaligned', {
      where,
      expected: 'null at the boundary',
      found: String(boundary[0]),
    });
  }
  if (lastId !== null && boundary[1] !== lastId) {
    throw new EngineError('the log-probs are misaligned', {
      where,
      expected: `id ${lastId} at the boundary`,
      found: `id ${boundary[1]}`,
    });
  }
  return tail.map((entry, j) => checkedEntry(entry, continuation[j] as number, `${where}, token ${j}`));
}

/** The generated ids with their log-probs: two lists of the reply that must agree. */
export function generatedTokens(
  reply: GenerateReply,
  limits: { readonly vocabularySize: number; readonly maxNewTokens: number; readonly bannedIds: readonly number[] },
  where: string,
): TokenLogprob[] {
  const ids = reply.output_ids ?? [];
  const entries = reply.meta_info.output_token_logprobs ?? [];
  if (ids.length !== entries.length) {
    throw new EngineError('generated ids and log-probs differ in number', {
      where,
      expected: `${ids.length} log-probs`,
      found: String(entries.length),
    });
  }
  if (ids.length === 0 || ids.length > limits.maxNewTokens) {
    throw new EngineError('wrong number of new tokens', {
      where,
      expected: `1 to ${limits.maxNewTokens}`,
      found: String(ids.length),
    });
  }
  checkIds(ids, limits.vocabularySize, `${where}, generated ids`);
  const banned = ids.find((id) => limits.bannedIds.includes(id));
  if (banned !== undefined) {
    throw new EngineError('a banned id was generated', { where, expected: 'logit_bias to keep it out', found: `id ${banned}` });
  }
  return ids.map((id, i) => checkedEntry(entries[i] as LogprobEntry, id, `${where}, new token ${i}`));
}

/** One set of weights within a call and within a turn. */
export function checkWeights(versions: readonly (string | null)[], before: string | null, where: string): string | null {
  const seen = [before, ...versions].filter((version) => version !== null);
  const other = seen.find((version) => version !== seen[0]);
  if (other !== undefined) {
    throw new EngineError('the weights changed within a turn', {
      where,
      expected: `weight version ${seen[0]}`,
      found: other,
      remedy: 'Update weights only while no question is in flight.',
    });
  }
  return seen[0] ?? null;
}

/** One log-prob entry of a reply, which must belong to the expected id and be finite. */
export function checkedEntry([logprob, id]: LogprobEntry, expectedId: number, where: string): TokenLogprob {
  if (id !== expectedId) {
    throw new EngineError('log-prob of another token', { where, expected: `id ${expectedId}`, found: `id ${id}` });
  }
  if (logprob === null || !Number.isFinite(logprob) || logprob > ABOVE_ZERO) {
    throw new EngineError('not a log-probability', {
      where,
      expected: 'a finite number of at most 0',
      found: logprob === null ? 'null (the server computed no finite number)' : String(logprob),
    });
  }
  return { id, logprob };
}
