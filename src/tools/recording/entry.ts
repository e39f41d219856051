// One recording: what was asked, what came, when, and how long it took. Its key is the hash of what was asked.
//   key = SHA-256(JSON {kind, provider, version, subject, parameters with sorted names})
import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { Parameters, Provider } from '../provider.js';

const hash = z.string().regex(/^[0-9a-f]{64}$/);

const pictureSchema = z.object({ sha256: hash, mediaType: z.string(), width: z.number().int(), height: z.number().int() });

const resultSchema = z.object({
  title: z.string().optional(),
  text: z.string().optional(),
  url: z.string().optional(),
  source: z.string().optional(),
  thumbnailUrl: z.string().optional(),
  /** The bytes lie in blobs/ under this hash. */
  thumbnail: pictureSchema.optional(),
});

export const requestSchema = z.object({
  kind: z.enum(['text-search', 'image-search', 'page', 'summary', 'thumbnail']),
  provider: z.string(),
  version: z.string(),
  subject: z.string(),
  parameters: z.record(z.string(), z.union([z.string(), z.number(), z.boolean(), z.null()])),
});

export const entrySchema = z.object({
  schema: z.literal(1),
  key: hash,
  request: requestSchema,
  /** `empty`: it worked and found nothing. Neither `empty` nor `failed` ever answers a later live call. */
  status: z.enum(['answered', 'empty', 'failed']),
  results: z.array(resultSchema),
  /** Why, where it failed. */
  error: z.string().nullable(),
  /** Replies as they came, bodies in blobs/ under their hashes. */
  raw: z.array(z.object({ url: z.string(), status: z.number().int(), mediaType: z.string(), sha256: hash })),
  latencyMs: z.number().min(0),
  /** ISO 8601. */
  retrievedAt: z.string(),
});

export type RecordedRequest = z.infer<typeof requestSchema>;
export type Entry = z.infer<typeof entrySchema>;
export type EntryStatus = Entry['status'];

export function requestOf<S>(provider: Provider<S>, subject: S): RecordedRequest {
  return {
    kind: provider.kind,
    provider: provider.name,
    version: provider.version,
    subject: provider.subjectOf(subject),
    parameters: sorted(provider.parameters),
  };
}

export function keyOf({ kind, provider, version, subject, parameters }: RecordedRequest): string {
  const identity = { kind, provider, version, subject, parameters: sorted(parameters) };
  return createHash('sha256').update(JSON.stringify(identity)).digest('hex');
}

function sorted(parameters: Parameters): Record<string, string | number | boolean | null> {
  return Object.fromEntries(Object.entries(parameters).sort(([a], [b]) => (a < b ? -1 : 1)));
}
