// Probe & Prefill and sketch routing: a decision per question fixes the first words of a thought, the model writes the rest.
import { z } from 'zod';
import { EngineError, UsageError } from '../../errors.js';
import type { Candidate, Engine, TokenContext, Tokenizer } from '../../types.js';
import { checkedLogprobs, score } from '../scoring.js';
import type { ThoughtTags } from './thought.js';
import type { WrittenOptions } from './written.js';

/** The first words for a question; blank for none. */
export type OpeningSource = (context: TokenContext, signal?: AbortSignal) => Promise<string>;

type Opening = NonNullable<WrittenOptions['opening']>;

/** From a table of first words by question id; `*` serves all others. */
export function tableSource(table: Readonly<Record<string, string>>): OpeningSource {
  return async ({ trajectory }) => (Object.hasOwn(table, trajectory) ? table[trajectory] : table['*']) ?? '';
}

export interface EndpointOptions {
  readonly url: string;
  readonly tokenizer: Tokenizer;
  readonly fetch: typeof fetch;
  readonly timeoutMs: number;
}

const replySchema = z.object({ opening: z.string() });

/**
 * From a service: POST {"id": question id, "text": the history's text}, reply {"opening": "first words"}.
 * Throws EngineError naming the address when it does not answer so.
 */
export function endpointSource({ url, tokenizer, fetch, timeoutMs }: EndpointOptions): OpeningSource {
  return async ({ trajectory, ids }, signal) => {
    const limit = AbortSignal.timeout(timeoutMs);
    const fail = (found: string, cause?: unknown): never => {
      throw new EngineError('the probe gave no opening', { where: url, expected: '{"opening": "..."}', found, cause });
    };
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ id: trajectory, text: tokenizer.decode(ids) }),
      signal: signal ? AbortSignal.any([signal, limit]) : limit,
    }).catch((error: unknown) => {
      signal?.throwIfAborted();
      return fail(error instanceof Error ? error.message : String(error), error);
    });
    if (!response.ok) fail(`status ${response.status}`);
    const reply = replySchema.safeParse(await response.json().catch(() => null));
    return reply.success ? reply.data.opening : fail('another reply');
  };
}

/** Opens the first turn of each question and leaves the others to the model. */
export function openFirstTurn(source: OpeningSource, tokenizer: Tokenizer, { open }: ThoughtTags): Opening {
  const userTurn = tokenizer.encode('<|im_start|>user');
  return async (context, signal) => {
    if (countRuns(context.ids, userTurn) !== 1) return [];
    const words = await source(context, signal);
    return words.trim() === '' ? [] : tokenizer.encode(`${open}${words}`);
  };
}

/** Opens every turn with the words of a sketch paradigm, fixed or decided per question. */
export function openEveryTurn(source: OpeningSource, tokenizer: Tokenizer, { open }: ThoughtTags): Opening {
  return async (context, signal) => {
    const words = await source(context, signal);
    return words.trim() === '' ? [] : tokenizer.encode(`${open}${words}`);
  };
}

/**
 * The opening that the model itself finds most likely, by its mean log-prob. A surrogate of this project's own: Probe &
 * Prefill decides with a trained probe on hidden states, which this is not.
 */
export function likeliestOpening(
  engine: Engine,
  openings: readonly string[],
  tokenizer: Tokenizer,
  { open }: ThoughtTags,
): Opening {
  const candidates = openings.map((text, i): Candidate => {
    if (text.trim() === '') throw new UsageError('blank opening', { where: `opening ${i}` });
    return { id: `opening ${i}`, text, expectedActions: [], ids: tokenizer.encode(`${open}${text}`) };
  });
  if (candidates.length === 0) throw new UsageError('no openings', { expected: 'at least one text' });
  return async (context, signal) => {
    const scoring = await engine.score(
      context,
      candidates.map(({ ids }) => ids),
      signal && { signal },
    );
    const scores = checkedLogprobs(scoring, candidates).map((row) => score(row, 1));
    return candidates[scores.indexOf(Math.max(...scores))]?.ids ?? [];
  };
}

function countRuns(ids: readonly number[], run: readonly number[]): number {
  let count = 0;
  for (let i = 0; i + run.length <= ids.length; i++) if (run.every((id, j) => ids[i + j] === id)) count++;
  return count;
}
