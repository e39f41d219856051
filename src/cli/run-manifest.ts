// manifest.json of a finished run, read back: what judging and reporting need to know of it.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { DataError } from '../errors.js';
import { FIELDS } from './options.js';

const text = z.string();

/** Everything else in the file is kept as it is. */
const manifestSchema = z.looseObject({
  settings: z.looseObject({
    benchmark: text,
    split: FIELDS.split.schema.optional(),
    data: FIELDS.data.schema.optional(),
    judge: FIELDS.judge.schema,
    judgeUrl: FIELDS.judgeUrl.schema.optional(),
    judgeModel: FIELDS.judgeModel.schema.optional(),
    judgeImages: FIELDS.judgeImages.schema.optional(),
    judgeCache: FIELDS.judgeCache.schema.optional(),
    judgeConcurrency: FIELDS.judgeConcurrency.schema,
  }),
  identity: z.looseObject({
    settings: z.record(text, z.unknown()),
    benchmark: z.object({ name: text, split: text, sha256: text }),
    judge: text,
  }),
  plan: z.array(text),
  library: z.looseObject({ candidates: z.array(z.looseObject({ id: text, expectedActions: z.array(text) })) }),
});

export type RunManifest = z.infer<typeof manifestSchema>;

/** Throws DataError for a folder that holds no run. */
export async function readRunManifest(folder: string): Promise<RunManifest> {
  const path = join(folder, 'manifest.json');
  try {
    return manifestSchema.parse(JSON.parse(await readFile(path, 'utf8')));
  } catch (cause) {
    const [issue] = cause instanceof z.ZodError ? cause.issues : [];
    const found = issue ? `${issue.path.join('.')}: ${issue.message}` : cause instanceof Error ? cause.message : String(cause);
    throw new DataError('not a run', { where: path, expected: 'the manifest of a results folder', found, cause });
  }
}
