// The prepared folder, the only form that evaluation reads: images/<sha256>.<ext>, index.jsonl (a question a line), manifest.json.
import { z } from 'zod';

const hash = z.string().regex(/^[0-9a-f]{64}$/);

export const imagePathSchema = z.string().regex(/^images\/[0-9a-f]{64}\.[a-z]+$/, 'expected images/<sha256>.<extension>');

export const preparedQuestionSchema = z.object({
  id: z.string().min(1),
  type: z.string(),
  question: z.string(),
  images: z.array(imagePathSchema),
  answers: z.array(z.string()),
  /** Candidate id per turn of a reference trajectory. */
  expected: z.array(z.string()).optional(),
  /** Damage that was found when the row was prepared. */
  flags: z.array(z.string()).optional(),
  meta: z.record(z.string(), z.unknown()).optional(),
  source: z.object({ file: z.string(), row: z.number() }).optional(),
});

export type PreparedQuestion = z.infer<typeof preparedQuestionSchema>;

/** A question without a usable picture cannot be asked. */
export const pictureFlags: readonly string[] = ['image-missing', 'image-undecodable'];

export const manifestSchema = z.object({
  schema: z.literal(1),
  name: z.string(),
  split: z.string(),
  questions: z.number().int(),
  types: z.record(z.string(), z.number().int()),
  sha256: z.object({ 'index.jsonl': hash, 'image-search.jsonl': hash.optional() }),
  title: z.string().optional(),
  licence: z.string().optional(),
  expected: z.object({ questions: z.number().nullable(), sourceRows: z.number().nullable() }).optional(),
  source: z
    .object({
      repository: z.string(),
      /** Null for files that the user brought. */
      revision: z.string().nullable(),
      rows: z.number().int(),
      files: z.array(z.object({ path: z.string(), sizeBytes: z.number(), sha256: hash })),
    })
    .optional(),
  images: z.object({ files: z.number().int(), bytes: z.number() }).optional(),
  /** How many questions carry each flag. */
  flags: z.record(z.string(), z.number().int()).optional(),
});

export type PreparedManifest = z.infer<typeof manifestSchema>;

/** One line of image-search.jsonl: what reverse image search found for the picture of a question. */
export const imageSearchEntrySchema = z.object({
  id: z.string().min(1),
  results: z.array(z.object({ title: z.string(), thumbnail: imagePathSchema.optional(), thumbnailUrl: z.string().optional() })),
});

export type ImageSearchEntry = z.infer<typeof imageSearchEntrySchema>;
