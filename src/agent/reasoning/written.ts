// Generated reasoning: the model writes z_t and a_t in one breath. The reasoning span ends when the closing tag arrives; the rest
// of the same generation becomes the action. Freeform, Chain-of-Draft and Sketch-of-Thought differ in their prompts alone.
import { EngineError } from '../../errors.js';
import type {
  Engine,
  Generation,
  Reasoner,
  Reasoning,
  Sampling,
  TokenContext,
  Tokenizer,
  TokenLogprob,
  Usage,
} from '../../types.js';
import { createThoughtReader, type ThoughtEnd, type ThoughtTags } from './thought.js';

export interface WrittenOptions {
  readonly tokenizer: Tokenizer;
  readonly tags: ThoughtTags;
  /** Most tokens a thought may take. Thought and action share maxTokens + eta.maxNewTokens, since they are one generation. */
  readonly maxTokens: number;
  /** Lets a checkpoint act without a thought; otherwise an output without the closing tag has no action. */
  readonly optional?: boolean;
  /** The first words of the thought, opening tag included, inserted instead of written; by default none. */
  readonly opening?: (context: TokenContext, signal?: AbortSignal) => Promise<readonly number[]>;
}

export function writtenReasoner(name: string, engine: Engine, options: WrittenOptions): Reasoner {
  return {
    name,
    maxTokens: options.maxTokens,
    async reason(context, eta, _random, signal) {
      const opening = (await options.opening?.(context, signal)) ?? [];
      const budget = Math.max(1, options.maxTokens - opening.length) + eta.maxNewTokens;
      return write(engine, behind(context, opening), { ...eta, maxNewTokens: budget }, { ...options, opening, signal });
    },
  };
}

/** The context as it stands now with text ids appended: the history grows by the thought while the call is still under way. */
function behind({ trajectory, ids, images, length }: TokenContext, added: readonly number[]): TokenContext {
  return { trajectory, images: [...images], ids: [...ids, ...added], length: length + added.length };
}

/** Tokens of z_t by where they came from. */
interface Thought {
  readonly inserted: number;
  readonly written: number;
}

interface Writing extends Pick<WrittenOptions, 'tokenizer' | 'tags' | 'optional'> {
  readonly opening: readonly number[];
  readonly signal: AbortSignal | undefined;
}

/** Resolves when the thought has ended; rejects when the generation fails before. */
function write(engine: Engine, context: TokenContext, sampling: Sampling, writing: Writing): Promise<Reasoning> {
  const { tokenizer, tags, opening, optional = false, signal } = writing;
  const read = createThoughtReader(tokenizer, tags, opening.length > 0);
  const told: TokenLogprob[] = [];
  return new Promise((resolve, reject) => {
    let ended = false;
    const end = ({ length }: Pick<ThoughtEnd, 'length'>): void => {
      ended = true;
      const written = told.slice(0, length);
      const thought = { inserted: opening.length, written: length };
      const action = call.then((generation) => actionOf(generation, thought, told.length));
      // A failure after this moment is the action's: it must not be an unhandled one while nobody waits for it yet.
      action.catch(() => undefined);
      resolve({
        ids: [...opening, ...written.map(({ id }) => id)],
        written: written.map(({ logprob }) => logprob),
        selection: null,
        action,
        usage: usageOfThought(context, thought),
      });
    };
    const onToken = (token: TokenLogprob): void => {
      told.push(token);
      if (ended) return;
      const thought = read(token);
      if (thought !== null && (thought.kind === 'closed' || optional)) end(thought);
    };
    // Deferred, since an engine may tell its first token before its promise is in our hands.
    const call = Promise.resolve().then(() => engine.generate(context, sampling, { onToken, ...(signal && { signal }) }));
    call.then(({ tokens }) => {
      // Never closed: all of it is thought, and the action stays empty.
      if (!ended) end({ length: tokens.length });
    }, reject);
  });
}

/** The tokens behind the thought. Throws EngineError when the engine did not tell all tokens as they came: no span could be timed. */
function actionOf({ tokens, finishReason, usage }: Generation, thought: Thought, told: number): Generation {
  if (told !== tokens.length) {
    throw new EngineError('the engine did not tell the tokens as it produced them', {
      expected: `${tokens.length} calls of onToken`,
      found: String(told),
      remedy: 'Written reasoning is timed by its tokens; use an engine that streams.',
    });
  }
  return { tokens: tokens.slice(thought.written), finishReason, usage: usageOfAction(usage, thought) };
}

/**
 * One call, two spans. The thought counts as its own tokens behind a history that the prefill has put into the cache; whatever the
 * call reports beyond that, a cache miss and the action's tokens, is the action's. Computed tokens sum to the call's. Time that the
 * call waited passed before its first token, in the thought's span, and is known too late to be taken out: it stays there.
 */
function usageOfThought({ length }: TokenContext, thought: Thought): Usage {
  const { inserted, written } = thought;
  return {
    promptTokens: length,
    cachedTokens: length - inserted,
    computedTokens: inserted + written,
    imagesEncoded: 0,
  };
}

function usageOfAction({ promptTokens, cachedTokens, computedTokens, imagesEncoded }: Usage, thought: Thought): Usage {
  const { inserted, written } = thought;
  const missed = Math.max(0, promptTokens - cachedTokens - inserted);
  return {
    promptTokens: promptTokens + written,
    cachedTokens: promptTokens + written - missed,
    // The last sampled token is not run, so a generation that is all thought would leave -1.
    computedTokens: Math.max(0, computedTokens - inserted - written),
    imagesEncoded,
  };
}
