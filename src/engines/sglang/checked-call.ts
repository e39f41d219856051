// One call of a trajectory: sent to its server, and every reply held to the prompt that was meant before anything counts.
import { EngineError } from '../../errors.js';
import type { TokenContext } from '../../types.js';
import { type Call, type CallResult, serverTimes } from './calls.js';
import { checkEcho, checkFinished, checkIds, checkPrompt, checkWeights } from './checks.js';
import type { Connection } from './connect.js';
import type { ReadBody } from './http.js';
import type { Place } from './pool.js';
import type { GenerateReply } from './protocol.js';
import type { Trajectory } from './trajectories.js';

/** Who asks, about what, and where. */
export interface Scene {
  readonly connection: Connection;
  readonly context: TokenContext;
  readonly place: Place;
  readonly trajectory: Trajectory;
}

export interface CheckedRequest
  extends Pick<Call, 'verb' | 'rows' | 'sampling' | 'returnLogprob' | 'logprobStart' | 'idempotent'> {
  /** Positions that follow the context in each row. */
  readonly added: readonly number[];
  readonly timeoutMs?: number;
  readonly signal: AbortSignal | undefined;
  /** Reads a streamed reply. */
  readonly read?: ReadBody<GenerateReply>;
}

/** Sends, then holds every reply to the prompt that was meant. */
export async function sendChecked(
  { connection, context, place, trajectory }: Scene,
  request: CheckedRequest,
): Promise<CallResult> {
  const { model, encoder, timeouts, onCall } = connection;
  const { verb, added, read, signal, ...rest } = request;
  checkIds(context.ids, model.vocabularySize, context.trajectory);
  checkPads(context, model.imagePadId);
  const echo = context.images.length > trajectory.imagesEchoed;
  const call: Call = {
    verb,
    trajectory: context.trajectory,
    replica: place.replica,
    images: await encoder.encode(context.images),
    echo,
    timeoutMs: timeouts.requestMs,
    ...rest,
    ...(signal && { signal }),
  };
  const result = read ? await place.server.stream(call, read) : await place.server.call(call);
  const { url } = place.server.facts;
  const versions = result.replies.map((reply, i) => {
    const where = `${url}, ${context.trajectory}, ${verb}${added.length > 1 ? ` row ${i}` : ''}`;
    checkFinished(reply, where);
    const extra = added[i] ?? 0;
    checkPrompt(
      reply,
      { positions: context.length + extra, sentIds: context.ids.length + extra, imageCount: context.images.length },
      where,
    );
    return reply.meta_info.weight_version == null ? null : String(reply.meta_info.weight_version);
  });
  const echoed = result.replies[0]?.prompt_token_ids;
  if (echo && echoed) {
    // The first row's continuation, if any, is checked by its log-probs.
    checkEcho(echoed.slice(0, context.length), context.ids, model.imagePadId, `${url}, ${context.trajectory}`);
    trajectory.imagesEchoed = context.images.length;
  }
  trajectory.weights = checkWeights(versions, trajectory.weights, `${url}, ${context.trajectory}, ${verb}`);
  onCall?.({
    url,
    verb,
    trajectory: context.trajectory,
    ...result.cost,
    ...serverTimes(result.replies),
    ...tokenCounts(result.replies),
    weights: trajectory.weights,
  });
  return result;
}

/** One image_pad per picture: with more the server fails or hangs, with fewer it drops a picture and says nothing. */
function checkPads(context: TokenContext, imagePadId: number): void {
  let pads = 0;
  for (const id of context.ids) if (id === imagePadId) pads++;
  if (pads === context.images.length) return;
  throw new EngineError('image tokens and pictures differ in number', {
    where: context.trajectory,
    expected: `${context.images.length} image_pad ids (unexpanded, one per picture)`,
    found: String(pads),
  });
}

export function tokenCounts(replies: readonly GenerateReply[]): {
  promptTokens: number;
  cachedTokens: number;
  newTokens: number;
} {
  const sum = (of: (meta: GenerateReply['meta_info']) => number): number =>
    replies.reduce((total, { meta_info }) => total + of(meta_info), 0);
  return {
    promptTokens: sum((meta) => meta.prompt_tokens),
    cachedTokens: sum((meta) => meta.cached_tokens ?? 0),
    newTokens: sum((meta) => meta.completion_tokens ?? 0),
  };
}
