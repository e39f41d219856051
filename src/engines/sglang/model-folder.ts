// What the client must know of the served model and the server does not say: vocabulary, vision ids, image geometry.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { DataError } from '../../errors.js';
import type { ImageGeometry } from '../../types.js';

export interface ModelFacts {
  readonly folder: string;
  readonly vocabularySize: number;
  readonly contextLength: number;
  readonly imagePadId: number;
  /** image_pad, video_pad, vision_start and vision_end, as far as the config names them. */
  readonly visionIds: readonly number[];
  readonly geometry: ImageGeometry;
}

const count = z.number().int().positive();
const id = z.number().int().nonnegative();

const configSchema = z.object({
  text_config: z.object({ vocab_size: count, max_position_embeddings: count }),
  image_token_id: id,
  video_token_id: id.optional(),
  vision_start_token_id: id.optional(),
  vision_end_token_id: id.optional(),
});

const preprocessorSchema = z.object({
  patch_size: count,
  merge_size: count,
  size: z.object({ shortest_edge: count, longest_edge: count }).optional(),
  min_pixels: count.optional(),
  max_pixels: count.optional(),
});

/** Reads config.json and preprocessor_config.json of a Qwen-VL folder; throws DataError naming file and field. */
export async function readModelFolder(folder: string): Promise<ModelFacts> {
  const config = await readChecked(join(folder, 'config.json'), configSchema);
  const path = join(folder, 'preprocessor_config.json');
  const pixels = await readChecked(path, preprocessorSchema);
  // Qwen names areas as edges here: shortest_edge and longest_edge are pixel counts.
  const minPixels = pixels.size?.shortest_edge ?? pixels.min_pixels;
  const maxPixels = pixels.size?.longest_edge ?? pixels.max_pixels;
  if (minPixels === undefined || maxPixels === undefined) {
    throw new DataError('no image sizes', { where: path, expected: 'size.shortest_edge and size.longest_edge' });
  }
  const visionIds = [config.image_token_id, config.video_token_id, config.vision_start_token_id, config.vision_end_token_id];
  return {
    folder,
    vocabularySize: config.text_config.vocab_size,
    contextLength: config.text_config.max_position_embeddings,
    imagePadId: config.image_token_id,
    visionIds: visionIds.filter((value) => value !== undefined),
    geometry: { patchSize: pixels.patch_size, mergeSize: pixels.merge_size, minPixels, maxPixels },
  };
}

async function readChecked<S extends z.ZodType>(path: string, schema: S): Promise<z.infer<S>> {
  const source = await readFile(path, 'utf8').catch((cause: unknown) => {
    throw new DataError('cannot read the served model', {
      where: path,
      found: cause instanceof Error ? cause.message : String(cause),
      remedy: 'Give --model the local folder of the checkpoint that the server runs (its config and tokenizer files are enough).',
      cause,
    });
  });
  let json: unknown;
  try {
    json = JSON.parse(source);
  } catch (cause) {
    throw new DataError('not JSON', { where: path, found: cause instanceof Error ? cause.message : String(cause), cause });
  }
  const parsed = schema.safeParse(json);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new DataError(issue?.message ?? 'malformed', { where: `${path}: ${issue?.path.join('.') ?? ''}` });
}
