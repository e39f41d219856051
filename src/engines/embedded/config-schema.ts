// What config.json and preprocessor_config.json of a Qwen3-VL folder must hold, field by field; all else in them is let pass.
import { z } from 'zod';

const count = z.number().int().positive();
const tokenId = z.number().int().nonnegative();
const threeNumbers = z.tuple([z.number(), z.number(), z.number()]);

const ropeSchema = z.looseObject({
  rope_type: z.string().optional(),
  type: z.string().optional(),
  rope_theta: z.number().positive().optional(),
  mrope_section: z.tuple([count, count, count]).optional(),
  mrope_interleaved: z.boolean().optional(),
});

const textSchema = z.looseObject({
  vocab_size: count,
  hidden_size: count,
  intermediate_size: count,
  num_hidden_layers: count,
  num_attention_heads: count,
  num_key_value_heads: count,
  head_dim: count,
  hidden_act: z.literal('silu').default('silu'),
  max_position_embeddings: count,
  rms_norm_eps: z.number().positive().default(1e-6),
  attention_bias: z.boolean().default(false),
  /** transformers 5 writes rope_parameters; published checkpoints have rope_theta and rope_scaling. */
  rope_parameters: ropeSchema.nullish(),
  rope_theta: z.number().positive().optional(),
  rope_scaling: ropeSchema.nullish(),
  tie_word_embeddings: z.boolean().optional(),
});

const visionSchema = z.looseObject({
  depth: count,
  hidden_size: count,
  intermediate_size: count,
  num_heads: count,
  in_channels: z.literal(3).default(3),
  patch_size: count,
  temporal_patch_size: count,
  spatial_merge_size: count,
  out_hidden_size: count,
  num_position_embeddings: count,
  deepstack_visual_indexes: z.array(z.number().int().nonnegative()),
  hidden_act: z.literal('gelu_pytorch_tanh').default('gelu_pytorch_tanh'),
  rope_parameters: ropeSchema.nullish(),
});

export const configSchema = z.looseObject({
  architectures: z.tuple([z.literal('Qwen3VLForConditionalGeneration')]),
  model_type: z.literal('qwen3_vl'),
  text_config: textSchema,
  vision_config: visionSchema,
  image_token_id: tokenId,
  video_token_id: tokenId,
  tie_word_embeddings: z.boolean().default(false),
});

export const preprocessorSchema = z.looseObject({
  patch_size: count,
  temporal_patch_size: count,
  merge_size: count,
  image_mean: threeNumbers,
  image_std: threeNumbers,
  size: z.looseObject({ shortest_edge: count, longest_edge: count }).optional(),
  min_pixels: count.optional(),
  max_pixels: count.optional(),
  resample: z.literal(3).default(3),
  rescale_factor: z
    .number()
    .positive()
    .default(1 / 255),
  do_resize: z.literal(true).default(true),
  do_rescale: z.literal(true).default(true),
  do_normalize: z.literal(true).default(true),
  do_convert_rgb: z.literal(true).default(true),
});

export type RawTextConfig = z.infer<typeof textSchema>;
export type RawVisionConfig = z.infer<typeof visionSchema>;
export type RawPreprocessorConfig = z.infer<typeof preprocessorSchema>;
