// An engine without a model: it plays a script, turn by turn, and keeps every promise of the contract. For tests, demonstrations
// and `--engine scripted`. The wanted candidate gets the best score for every length exponent, the wanted action is generated.
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { EngineError, UsageError } from '../errors.js';
import type { Candidate, Engine, EngineInfo, FinishReason, Sampling, TokenContext, Tokenizer, TokenLogprob } from '../types.js';
import { PrefixCache } from './prefix-cache.js';

/** What happens in one turn: a candidate, by place in the library or by id, and the action's text. */
interface ScriptedTurn {
  readonly candidate: number | string;
  readonly action: string;
}

/** Turns by question id; `*` serves all other questions. */
export type Script = Readonly<Record<string, readonly ScriptedTurn[]>>;

/** Decides a turn (counted from 0) of a trajectory; undefined where it knows none. */
export type Policy = (trajectory: string, turn: number) => ScriptedTurn | undefined;

export interface ScriptedEngineOptions {
  readonly script: Script | Policy;
  readonly tokenizer: Tokenizer;
  /** Needed by scripts that name candidates by id. */
  readonly candidates?: readonly Candidate[];
  readonly model?: string;
  /** Whatever of the description a test wants otherwise. */
  readonly info?: Partial<EngineInfo>;
}

const scriptSchema = z.record(
  z.string(),
  z.array(z.strictObject({ candidate: z.union([z.number().int().min(0), z.string().min(1)]), action: z.string() })).min(1),
);

/** Reads `{"<question id>": [{"candidate": 0, "action": "<answer> ...</answer>"}], "*": [...]}`. Throws UsageError. */
export async function readScript(path: string): Promise<Script> {
  let json: unknown;
  try {
    json = JSON.parse(await readFile(path, 'utf8'));
  } catch (cause) {
    const found = (cause as NodeJS.ErrnoException).code ?? (cause instanceof Error ? cause.message : String(cause));
    throw new UsageError('cannot read the script', { where: path, expected: 'a JSON file', found, cause });
  }
  const parsed = scriptSchema.safeParse(json);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new UsageError(`${issue?.path.join('.') || 'script'}: ${issue?.message ?? 'malformed'}`, {
    where: path,
    expected: '{"<question id>": [{"candidate": 0, "action": "..."}]}, "*" for all others',
  });
}

export function createScriptedEngine(options: ScriptedEngineOptions): Engine {
  const { tokenizer, script } = options;
  const info = describe(options);
  const policy: Policy =
    typeof script === 'function' ? script : (name, turn) => (Object.hasOwn(script, name) ? script[name] : script['*'])?.[turn];
  const cache = new PrefixCache(info.geometry, tokenizer.idOf('<|image_pad|>'));
  // Sent lengths at which a trajectory has acted: a repeated call plays its turn again, a longer context the next one.
  const acted = new Map<string, Set<number>>();

  const turnOf = ({ trajectory, ids }: TokenContext): { play: ScriptedTurn; where: string } => {
    const turn = [...(acted.get(trajectory) ?? [])].filter((length) => length < ids.length).length;
    const where = `${trajectory}, turn ${turn}`;
    const play = policy(trajectory, turn);
    if (play === undefined) {
      throw new EngineError('the script has no such turn', { where, remedy: 'Add it to the script, under the id or under "*".' });
    }
    return { play, where };
  };

  return {
    describe: async () => info,
    async prefill(context, { signal, shared = false } = {}) {
      signal?.throwIfAborted();
      checkLength(context.length, context, info);
      const usage = cache.use(context);
      if (shared) cache.share(context);
      return usage;
    },
    async score(context, continuations, { signal } = {}) {
      signal?.throwIfAborted();
      checkLength(context.length + Math.max(0, ...continuations.map(({ length }) => length)), context, info);
      const { play, where } = turnOf(context);
      const wanted = continuations[placeOf(play.candidate, options.candidates, where)];
      if (wanted === undefined) {
        throw new EngineError('the script wants a candidate that was not scored', {
          where,
          expected: `one of ${continuations.length}, counted from 0`,
          found: String(play.candidate),
        });
      }
      return { rows: continuations.map((ids) => scoreRow(ids, wanted)), usage: cache.use(context, continuations) };
    },
    async generate(context, sampling, { signal, onToken } = {}) {
      signal?.throwIfAborted();
      checkLength(context.length, context, info);
      const { play, where } = turnOf(context);
      acted.set(context.trajectory, (acted.get(context.trajectory) ?? new Set()).add(context.ids.length));
      const { ids, finishReason } = perform(tokenizer.encode(play.action), sampling, where);
      // The last id is sampled but not read: the next prefill computes it.
      const usage = cache.use(context, [ids.slice(0, -1)]);
      const tokens = ids.map((id): TokenLogprob => ({ id, logprob: -0.01 }));
      for (const token of tokens) onToken?.(token);
      return { tokens, finishReason, usage };
    },
    async release(trajectory) {
      acted.delete(trajectory);
      cache.release(trajectory);
    },
    async close() {
      acted.clear();
    },
  };
}

function describe({ script, tokenizer, model, info }: ScriptedEngineOptions): EngineInfo {
  const content = typeof script === 'function' ? 'policy' : JSON.stringify(script);
  return {
    engine: 'scripted',
    version: '1',
    model: model ?? 'script',
    weights: createHash('sha256').update(content).digest('hex'),
    vocabularySize: 1 + Math.max(...tokenizer.addedTokens.map((token) => tokenizer.idOf(token))),
    contextLength: 32768,
    geometry: { patchSize: 16, mergeSize: 2, minPixels: 65536, maxPixels: 8294400 },
    ...info,
  };
}

function checkLength(positions: number, { trajectory }: TokenContext, { contextLength }: EngineInfo): void {
  if (positions <= contextLength) return;
  throw new EngineError('the context is too long', {
    where: trajectory,
    expected: `at most ${contextLength} positions`,
    found: String(positions),
  });
}

function placeOf(candidate: number | string, candidates: readonly Candidate[] | undefined, where: string): number {
  if (typeof candidate === 'number') return candidate;
  const place = (candidates ?? []).findIndex(({ id }) => id === candidate);
  if (place !== -1) return place;
  throw new EngineError('the script wants an unknown candidate', {
    where,
    expected: `one of: ${candidates?.map(({ id }) => id).join(', ') ?? '(numbers only)'}`,
    found: candidate,
  });
}

/**
 * Log-probs of one continuation: 0.01 nats are spread over the wanted one, each token off its path costs at least 5. Tokens behind
 * equal prefixes get equal values, and the wanted continuation scores best by sum, by mean and between (below 500 tokens).
 */
function scoreRow(ids: readonly number[], wanted: readonly number[]): TokenLogprob[] {
  const firstOff = ids.findIndex((id, i) => id !== wanted[i]);
  return ids.map((id, i) => ({
    id,
    logprob: firstOff === -1 || i < firstOff ? -0.01 / wanted.length : -5 - (id % 8) / 8,
  }));
}

/** The action as a sampler would leave it: ended by a stop id or by the limit. Throws EngineError for a banned id. */
function perform(action: readonly number[], sampling: Sampling, where: string): { ids: number[]; finishReason: FinishReason } {
  const [stopId] = sampling.stopIds;
  const stopAt = action.findIndex((id) => sampling.stopIds.includes(id));
  const whole = stopAt === -1 ? [...action, ...(stopId === undefined ? [] : [stopId])] : action.slice(0, stopAt + 1);
  const ids = whole.slice(0, sampling.maxNewTokens);
  const banned = ids.find((id) => sampling.bannedIds.includes(id));
  if (banned !== undefined) throw new EngineError('the scripted action holds a banned token', { where, found: `id ${banned}` });
  const stopped = ids.length === whole.length && stopId !== undefined;
  return { ids, finishReason: stopped ? 'stop' : 'length' };
}
