// What one question leaves behind: one JSONL line, complete enough for Algorithm 2 and for re-scoring without an engine.
// docs/formats.md describes each field with its unit.
import { z } from 'zod';

const usageSchema = z.object({
  promptTokens: z.number().int(),
  cachedTokens: z.number().int(),
  computedTokens: z.number().int(),
  imagesEncoded: z.number().int(),
});

const actionSchema = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('answer'), text: z.string() }),
  z.object({ kind: z.literal('image_search_tool') }),
  z.object({ kind: z.literal('text_search_tool'), query: z.string() }),
  z.object({
    kind: z.literal('image_zoom_in_tool'),
    box: z.tuple([z.number(), z.number(), z.number(), z.number()]),
    label: z.string(),
    imageIndex: z.number().int(),
  }),
  z.object({ kind: z.literal('invalid'), reason: z.string() }),
]);

const observationSchema = z.object({
  /** Sent ids of o_t. */
  length: z.number().int(),
  /** SHA-256 of the pictures it brought. */
  images: z.array(z.string()),
  result: z.discriminatedUnion('kind', [
    z.object({
      kind: z.literal('results'),
      results: z.array(
        z.object({
          title: z.string().optional(),
          text: z.string().optional(),
          url: z.string().optional(),
          thumbnail: z.string().optional(),
          /** Where the page says it is from, and why something stands in for what was asked. */
          source: z.string().optional(),
          fallback: z.string().optional(),
        }),
      ),
    }),
    z.object({ kind: z.literal('image'), image: z.string() }),
    z.object({ kind: z.literal('error'), message: z.string() }),
  ]),
});

const turnSchema = z.object({
  /** h_t is the first `length` sent ids of the episode; z_t, a_t and o_t follow it in this order. */
  history: z.object({ length: z.number().int(), positions: z.number().int() }),
  prefill: usageSchema,
  reasoning: z.object({
    /** K, ids of z_t. */
    length: z.number().int(),
    usage: usageSchema,
    /** Null where z_t was not chosen from a library. */
    selection: z
      .object({
        index: z.number().int(),
        candidate: z.string(),
        scores: z.array(z.number()),
        probabilities: z.array(z.number()),
        logProbability: z.number(),
        margin: z.number().nullable(),
        /** Per candidate, per token, in nats. */
        tokenLogprobs: z.array(z.array(z.number())),
      })
      .nullable(),
    /** Log-probs of z_t's tokens where the model wrote it; null where it was inserted. */
    written: z.array(z.number()).nullable(),
    /** The entry that a written thought was meant to be, and its edit distance in characters; absent where nothing is matched. */
    match: z.object({ candidate: z.string(), distance: z.number().int() }).optional(),
  }),
  action: z.object({
    length: z.number().int(),
    text: z.string(),
    logprobs: z.array(z.number()),
    finishReason: z.enum(['stop', 'length']),
    parsed: actionSchema,
    usage: usageSchema,
  }),
  observation: observationSchema.nullable(),
  timingMs: z.object({
    prefill: z.number(),
    reasoning: z.number(),
    action: z.number(),
    tool: z.number(),
    media: z.number(),
    orchestration: z.number(),
  }),
});

/** In the order in which reports list them. */
export const EPISODE_STATUSES = [
  'answer',
  'invalid-output',
  'tool-error',
  'tool-disabled',
  'turn-limit',
  'context-limit',
  'error',
  'cancelled',
] as const;

export const episodeSchema = z.object({
  schema: z.literal(1),
  id: z.string(),
  type: z.string(),
  /** The trajectory's own seed, derived from the run's seed and the id. */
  seed: z.number().int(),
  /** A stop status of Algorithm 1, or `error` (a surprise; see `error`) or `cancelled`. */
  status: z.enum(EPISODE_STATUSES),
  reason: z.string().nullable(),
  answer: z.string().nullable(),
  answers: z.array(z.string()),
  /** Null where there is no verdict: errors, tool errors, judge errors, no gold. Never a wrong answer in disguise. */
  correct: z.boolean().nullable(),
  judge: z.string().nullable(),
  error: z.object({ kind: z.string(), message: z.string() }).nullable(),
  expected: z.array(z.string()).nullable(),
  /** All sent ids of the final history, and how many belong to the system turn. */
  ids: z.array(z.number().int()),
  positions: z.number().int(),
  systemLength: z.number().int(),
  /** Usage of the prefill of s; null when it did not come to that. */
  system: usageSchema.nullable(),
  images: z.array(z.object({ sha256: z.string(), mediaType: z.string(), width: z.number().int(), height: z.number().int() })),
  turns: z.array(turnSchema),
  /** system: prefill of s; media: loading the question's pictures; orchestration: all that no phase names. */
  timingMs: z.object({
    total: z.number(),
    system: z.number(),
    media: z.number(),
    judge: z.number(),
    orchestration: z.number(),
  }),
});

export type Episode = z.infer<typeof episodeSchema>;
export type EpisodeTurn = Episode['turns'][number];
export type EpisodeStatus = Episode['status'];

/** Tokens that a turn's reasoning took: all candidates' where it was selected, the written ones where the model wrote it. */
export function reasoningTokens({ selection, length }: EpisodeTurn['reasoning']): number {
  return selection === null ? length : selection.tokenLogprobs.reduce((sum, row) => sum + row.length, 0);
}

/** Statuses that say nothing about the model: they stand beside the success rate, never inside it. */
export function isErrorStatus(status: EpisodeStatus): boolean {
  return status === 'error' || status === 'cancelled' || status === 'tool-error';
}
