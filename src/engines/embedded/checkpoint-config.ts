// config.json and preprocessor_config.json of a Hugging Face Qwen3-VL folder, checked and reduced to what the engine needs.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { CheckpointError } from '../../errors.js';
import {
  configSchema,
  preprocessorSchema,
  type RawPreprocessorConfig,
  type RawTextConfig,
  type RawVisionConfig,
} from './config-schema.js';

export interface TextConfig {
  readonly vocabularySize: number;
  readonly hiddenSize: number;
  readonly feedForwardSize: number;
  readonly layers: number;
  readonly heads: number;
  readonly keyValueHeads: number;
  readonly headWidth: number;
  readonly contextLength: number;
  readonly normEpsilon: number;
  readonly attentionBias: boolean;
  readonly ropeTheta: number;
  /** How many frequencies of a head follow time, height and width. */
  readonly ropeSections: readonly [number, number, number];
}

export interface VisionConfig {
  readonly depth: number;
  readonly hiddenSize: number;
  readonly feedForwardSize: number;
  readonly heads: number;
  readonly patchSize: number;
  readonly temporalPatchSize: number;
  readonly mergeSize: number;
  readonly outputSize: number;
  /** Side of the square table of learned positions. */
  readonly positionSide: number;
  /** Blocks whose output also feeds the text layers 0, 1, …, in that order. */
  readonly deepStackBlocks: readonly number[];
  readonly ropeTheta: number;
}

/** How encoded pictures become the vision tower's input. */
export interface PixelConfig {
  readonly patchSize: number;
  readonly mergeSize: number;
  readonly minPixels: number;
  readonly maxPixels: number;
  readonly mean: readonly [number, number, number];
  readonly std: readonly [number, number, number];
  readonly rescaleFactor: number;
}

export interface ModelConfig {
  readonly text: TextConfig;
  readonly vision: VisionConfig;
  readonly pixels: PixelConfig;
  readonly imageTokenId: number;
  readonly videoTokenId: number;
  readonly tiedEmbeddings: boolean;
}

export async function readModelConfig(directory: string): Promise<ModelConfig> {
  const configFile = join(directory, 'config.json');
  const raw = await readJson(configFile);
  refuseOtherArchitecture(raw, configFile);
  const config = check(configSchema, raw, configFile);
  const preprocessorFile = join(directory, 'preprocessor_config.json');
  const preprocessor = check(preprocessorSchema, await readJson(preprocessorFile), preprocessorFile);
  const model: ModelConfig = {
    text: textConfig(config.text_config, configFile),
    vision: visionConfig(config.vision_config),
    pixels: pixelConfig(preprocessor, preprocessorFile),
    imageTokenId: config.image_token_id,
    videoTokenId: config.video_token_id,
    tiedEmbeddings: config.text_config.tie_word_embeddings ?? config.tie_word_embeddings,
  };
  refuseInconsistent(model, configFile, preprocessorFile);
  return model;
}

function textConfig(text: RawTextConfig, file: string): TextConfig {
  const rope = text.rope_parameters ?? text.rope_scaling ?? {};
  const kind = rope.rope_type ?? rope.type ?? 'default';
  if (kind !== 'default' && kind !== 'mrope') {
    throw new CheckpointError('unsupported rope type', { where: `${file}: text_config`, expected: 'default', found: kind });
  }
  if (rope.mrope_interleaved === false) {
    throw new CheckpointError('unsupported rope layout', {
      where: `${file}: text_config`,
      expected: 'mrope_interleaved true',
      found: 'false',
    });
  }
  const theta = rope.rope_theta ?? text.rope_theta;
  if (theta === undefined) throw new CheckpointError('rope_theta is missing', { where: `${file}: text_config` });
  return {
    vocabularySize: text.vocab_size,
    hiddenSize: text.hidden_size,
    feedForwardSize: text.intermediate_size,
    layers: text.num_hidden_layers,
    heads: text.num_attention_heads,
    keyValueHeads: text.num_key_value_heads,
    headWidth: text.head_dim,
    contextLength: text.max_position_embeddings,
    normEpsilon: text.rms_norm_eps,
    attentionBias: text.attention_bias,
    ropeTheta: theta,
    ropeSections: rope.mrope_section ?? [24, 20, 20],
  };
}

function visionConfig(vision: RawVisionConfig): VisionConfig {
  return {
    depth: vision.depth,
    hiddenSize: vision.hidden_size,
    feedForwardSize: vision.intermediate_size,
    heads: vision.num_heads,
    patchSize: vision.patch_size,
    temporalPatchSize: vision.temporal_patch_size,
    mergeSize: vision.spatial_merge_size,
    outputSize: vision.out_hidden_size,
    positionSide: Math.floor(Math.sqrt(vision.num_position_embeddings)),
    deepStackBlocks: vision.deepstack_visual_indexes,
    ropeTheta: vision.rope_parameters?.rope_theta ?? 10_000,
  };
}

function pixelConfig(raw: RawPreprocessorConfig, file: string): PixelConfig {
  const minPixels = raw.min_pixels ?? raw.size?.shortest_edge;
  const maxPixels = raw.max_pixels ?? raw.size?.longest_edge;
  if (minPixels === undefined || maxPixels === undefined) {
    throw new CheckpointError('the pixel limits are missing', {
      where: file,
      expected: 'size.shortest_edge and size.longest_edge',
    });
  }
  return {
    patchSize: raw.patch_size,
    mergeSize: raw.merge_size,
    minPixels,
    maxPixels,
    mean: raw.image_mean,
    std: raw.image_std,
    rescaleFactor: raw.rescale_factor,
  };
}

function refuseOtherArchitecture(raw: unknown, file: string): void {
  const names = z
    .looseObject({ architectures: z.array(z.string()).default([]), model_type: z.string().default('') })
    .safeParse(raw);
  const found = names.success ? (names.data.architectures[0] ?? names.data.model_type) : 'none';
  if (found !== 'Qwen3VLForConditionalGeneration') {
    throw new CheckpointError('unsupported architecture', {
      where: file,
      expected: 'Qwen3VLForConditionalGeneration',
      found: found === '' ? 'none' : found,
      remedy: 'Use a Qwen3-VL checkpoint',
    });
  }
}

function refuseInconsistent({ text, vision, pixels }: ModelConfig, configFile: string, preprocessorFile: string): void {
  const rules: readonly (readonly [boolean, string, string])[] = [
    [text.heads % text.keyValueHeads === 0, configFile, 'num_attention_heads must be a multiple of num_key_value_heads'],
    [text.headWidth % 8 === 0, configFile, 'head_dim must be a multiple of 8'],
    [
      text.hiddenSize % 8 === 0 && text.feedForwardSize % 8 === 0,
      configFile,
      'hidden_size and intermediate_size must be multiples of 8',
    ],
    [sum(text.ropeSections) === text.headWidth / 2, configFile, 'mrope_section must sum to head_dim / 2'],
    [vision.hiddenSize % (8 * vision.heads) === 0, configFile, 'vision hidden_size must be a multiple of 8 x num_heads'],
    [vision.feedForwardSize % 8 === 0, configFile, 'vision intermediate_size must be a multiple of 8'],
    [vision.outputSize === text.hiddenSize, configFile, 'vision out_hidden_size must equal text hidden_size'],
    [vision.deepStackBlocks.every((block) => block < vision.depth), configFile, 'deepstack_visual_indexes must be below depth'],
    [vision.deepStackBlocks.length <= text.layers, configFile, 'there must be a text layer for every deepstack index'],
    [
      pixels.patchSize === vision.patchSize && pixels.mergeSize === vision.mergeSize,
      preprocessorFile,
      'patch_size and merge_size must equal the vision_config of config.json',
    ],
    [pixels.minPixels <= pixels.maxPixels, preprocessorFile, 'shortest_edge must not exceed longest_edge'],
  ];
  for (const [holds, where, rule] of rules) {
    if (!holds) throw new CheckpointError(`unusable configuration: ${rule}`, { where });
  }
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

async function readJson(file: string): Promise<unknown> {
  const text = await readFile(file, 'utf8').catch((cause: unknown) => {
    throw new CheckpointError('cannot be read', {
      where: file,
      remedy: 'Pass a checkpoint folder in Hugging Face format',
      cause,
    });
  });
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new CheckpointError('not valid JSON', { where: file, cause });
  }
}

function check<Schema extends z.ZodType>(schema: Schema, raw: unknown, file: string): z.infer<Schema> {
  const parsed = schema.safeParse(raw);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  throw new CheckpointError(issue?.message ?? 'invalid', { where: `${file}: ${issue?.path.join('.') ?? ''}` });
}
