// The Engine contract over SGLang's /generate: h_t is prefilled with zero new tokens, candidates are scored from position
// L_t - 1 in one batch (or one request per row), actions are sampled with explicit parameters, and every reply is checked.
import type {
  Engine,
  EngineCallOptions,
  EngineInfo,
  GenerateOptions,
  Generation,
  PrefillOptions,
  Sampling,
  Scoring,
  TokenContext,
  Usage,
} from '../../types.js';
import type { CallResult } from './calls.js';
import { sendChecked, tokenCounts } from './checked-call.js';
import { checkContinuation, checkFinished, generatedTokens, scoredRow } from './checks.js';
import { type Connection, connect } from './connect.js';
import type { SglangOptions } from './options.js';
import type { Place } from './pool.js';
import type { ServerFacts } from './preflight.js';
import type { GenerateReply } from './protocol.js';
import { NO_NEW_TOKENS, samplingParameters } from './sampling.js';
import { readStream } from './stream.js';
import { Trajectories, type Trajectory } from './trajectories.js';

export interface SglangEngine extends Engine {
  /** What the preflight found at each server. */
  readonly servers: readonly ServerFacts[];
}

/** Uncached positions up to which `auto` leaves the prefill to the scoring rows. */
const FEW_POSITIONS = 8;
const NOTHING: Usage = { promptTokens: 0, cachedTokens: 0, computedTokens: 0, imagesEncoded: 0 };

/** Connects to all servers and checks them; throws EngineError or EngineUnavailableError naming the one that does not fit. */
export async function createSglangEngine(options: SglangOptions): Promise<SglangEngine> {
  return new Client(await connect(options));
}

class Client implements SglangEngine {
  readonly #connection: Connection;
  readonly #trajectories = new Trajectories();

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  get servers(): readonly ServerFacts[] {
    return this.#connection.pool.servers.map(({ facts }) => facts);
  }

  async describe(): Promise<EngineInfo> {
    return this.#connection.info;
  }

  async prefill(context: TokenContext, options: PrefillOptions = {}): Promise<Usage> {
    const { pool, prefill } = this.#connection;
    if (options.shared) return this.#warmEverywhere(context, options.signal);
    const place = await pool.place(context.trajectory);
    const trajectory = this.#trajectories.of(context);
    const first = trajectory.cachedPositions === 0;
    if (first && this.#trajectories.isShared(context, place)) trajectory.cachedPositions = context.length;
    const uncached = context.length - trajectory.cachedPositions;
    const newImages = context.images.length > trajectory.imagesSeen;
    const few = prefill === 'auto' && uncached <= FEW_POSITIONS && !newImages;
    if (prefill !== 'on' && (few || (prefill === 'off' && !first) || uncached === 0)) return NOTHING;
    return this.#warm(context, place, options.signal);
  }

  async score(
    context: TokenContext,
    continuations: readonly (readonly number[])[],
    options: EngineCallOptions = {},
  ): Promise<Scoring> {
    const { pool, model } = this.#connection;
    const { vocabularySize, visionIds, imagePadId } = model;
    for (const [i, ids] of continuations.entries()) checkContinuation(ids, vocabularySize, visionIds, `continuation ${i}`);
    const place = await pool.place(context.trajectory);
    const trajectory = this.#trajectories.of(context);
    const history = trajectory.ids.of(context.ids);
    const scene = { connection: this.#connection, context, place, trajectory };
    const result = await sendChecked(scene, {
      verb: 'score',
      added: continuations.map((ids) => ids.length),
      rows: continuations.map((ids) => [history, Buffer.from(`,${ids.join(',')}`)]),
      sampling: NO_NEW_TOKENS,
      returnLogprob: true,
      logprobStart: context.length - 1,
      idempotent: true,
      signal: options.signal,
    });
    // Pictures and the vocabulary's last id come back as 0, so such a boundary tells nothing.
    const last = context.ids.at(-1) as number;
    const boundary = last === imagePadId || last === vocabularySize - 1 ? null : last;
    const where = `${place.server.facts.url}, ${context.trajectory}`;
    const rows = continuations.map((ids, i) =>
      scoredRow(result.replies[i] as GenerateReply, ids, boundary, `${where}, row ${i}`),
    );
    trajectory.cachedPositions = Math.max(trajectory.cachedPositions, context.length);
    return { rows, usage: usageOf(result, context, trajectory) };
  }

  async generate(context: TokenContext, sampling: Sampling, { onToken, signal }: GenerateOptions = {}): Promise<Generation> {
    const { pool, model, timeouts } = this.#connection;
    const place = await pool.place(context.trajectory);
    const trajectory = this.#trajectories.of(context);
    const { facts } = place.server;
    const where = `${facts.url}, ${context.trajectory}`;
    const scene = { connection: this.#connection, context, place, trajectory };
    const result = await sendChecked(scene, {
      verb: 'generate',
      added: [0],
      rows: [[trajectory.ids.of(context.ids)]],
      sampling: samplingParameters(sampling),
      returnLogprob: true,
      // A sample without an honoured seed cannot be drawn twice, and told tokens cannot be untold.
      idempotent: !onToken && (sampling.temperature === 0 || facts.deterministic),
      timeoutMs: timeouts.generateMs,
      signal,
      ...(onToken && { read: readStream(facts.incrementalStream, where, onToken) }),
    });
    const reply = result.replies[0] as GenerateReply;
    const { maxNewTokens, bannedIds } = sampling;
    const tokens = generatedTokens(reply, { vocabularySize: model.vocabularySize, maxNewTokens, bannedIds }, where);
    // The last new token's keys and values are not computed before something follows it.
    trajectory.cachedPositions = context.length + tokens.length - 1;
    trajectory.weights = null; // the turn ends with its action
    return { tokens, finishReason: checkFinished(reply, where), usage: usageOf(result, context, trajectory, tokens.length - 1) };
  }

  /** Nothing is held on the server for a trajectory: its cache is evicted when others need the room. */
  async release(trajectory: string): Promise<void> {
    this.#trajectories.forget(trajectory);
    this.#connection.pool.release(trajectory);
  }

  async close(): Promise<void> {
    await Promise.all(this.#connection.pool.servers.map(({ http }) => http.close()));
  }

  /** At every live place; it is enough when one of them succeeds, since the others are left alone from then on. */
  async #warmEverywhere(context: TokenContext, signal: AbortSignal | undefined): Promise<Usage> {
    const { pool } = this.#connection;
    const places = pool.live;
    if (places.length === 0) await pool.place(context.trajectory); // throws, naming them all
    const usages = await Promise.allSettled(places.map((place) => this.#warm(context, place, signal)));
    this.#trajectories.forget(context.trajectory);
    const done = usages.flatMap((usage) => (usage.status === 'fulfilled' ? [usage.value] : []));
    if (done.length === 0) throw (usages[0] as PromiseRejectedResult).reason;
    return done.reduce(add);
  }

  /** Zero new tokens at one place. What a trajectory begins with is remembered, since others begin with it too: it is s. */
  async #warm(context: TokenContext, place: Place, signal: AbortSignal | undefined): Promise<Usage> {
    const trajectory = this.#trajectories.of(context);
    const scene = { connection: this.#connection, context, place, trajectory };
    const result = await sendChecked(scene, {
      verb: 'prefill',
      added: [0],
      rows: [[trajectory.ids.of(context.ids)]],
      sampling: NO_NEW_TOKENS,
      returnLogprob: false,
      idempotent: true,
      signal,
    });
    if (trajectory.cachedPositions === 0 && context.images.length === 0) this.#trajectories.share(context, place);
    trajectory.cachedPositions = context.length;
    return usageOf(result, context, trajectory);
  }
}

/** What the rows needed between them; `generated` new tokens were run through the model as well. */
function usageOf({ replies, cost }: CallResult, context: TokenContext, trajectory: Trajectory, generated = 0): Usage {
  const { promptTokens, cachedTokens } = tokenCounts(replies);
  const imagesEncoded = context.images.length - trajectory.imagesSeen;
  trajectory.imagesSeen = context.images.length;
  return {
    promptTokens: context.length,
    cachedTokens,
    computedTokens: promptTokens - cachedTokens + generated,
    imagesEncoded,
    waitedMs: cost.retryMs + cost.queueMs,
  };
}

function add(a: Usage, b: Usage): Usage {
  return {
    promptTokens: a.promptTokens + b.promptTokens,
    cachedTokens: a.cachedTokens + b.cachedTokens,
    computedTokens: a.computedTokens + b.computedTokens,
    imagesEncoded: a.imagesEncoded + b.imagesEncoded,
  };
}
