// Writes a random Qwen3-VL checkpoint of a few kilobytes, whole or spoiled on purpose, for tests that need a model of any weights.
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import { createRandom } from '../../../src/random.js';
import type { TokenContext } from '../../../src/types.js';

/** Folders to remove after the test file that imports this module. */
const folders: string[] = [];
afterAll(() => Promise.all(folders.map((folder) => rm(folder, { recursive: true }))));

export const vocabularySize = 101;
export const imageTokenId = 7;
export const contextLength = 512;

export interface Tensor {
  dtype: string;
  shape: number[];
  data: Buffer;
}

export type Tensors = Map<string, Tensor>;

export interface CheckpointOptions {
  readonly tied?: boolean;
  readonly dtype?: 'F32' | 'BF16' | 'F16';
  /** Changes config.json after it is built. */
  readonly config?: (config: ReturnType<typeof tinyConfig>) => object;
  readonly tensors?: (tensors: Tensors) => void;
  /** Changes the bytes of model.safetensors. */
  readonly bytes?: (bytes: Buffer) => Buffer;
}

/** The path of a fresh folder in the system's temporary directory. */
export async function writeTinyCheckpoint(options: CheckpointOptions = {}): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'ssr-tiny-'));
  folders.push(directory);
  const config = tinyConfig(options.tied ?? true);
  const tensors = randomTensors(config, options.dtype ?? 'F32');
  options.tensors?.(tensors);
  const bytes = safetensors(tensors);
  await writeFile(join(directory, 'config.json'), JSON.stringify(options.config?.(config) ?? config));
  await writeFile(join(directory, 'preprocessor_config.json'), JSON.stringify(tinyPreprocessor()));
  await writeFile(join(directory, 'model.safetensors'), options.bytes?.(bytes) ?? bytes);
  return directory;
}

/** A text context of seeded random ids. */
export function textContext(trajectory: string, length: number, seed = 1): TokenContext {
  return { trajectory, ids: randomIds(length, seed), images: [], length };
}

export function randomIds(count: number, seed: number): number[] {
  const random = createRandom(seed);
  return Array.from({ length: count }, () => 10 + Math.floor(random() * (vocabularySize - 10)));
}

export function safetensors(tensors: Tensors): Buffer {
  let offset = 0;
  const header: Record<string, object> = {};
  for (const [name, { dtype, shape, data }] of tensors) {
    header[name] = { dtype, shape, data_offsets: [offset, offset + data.length] };
    offset += data.length;
  }
  const text = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  return Buffer.concat([length, text, ...[...tensors.values()].map(({ data }) => data)]);
}

function tinyConfig(tied: boolean) {
  return {
    architectures: ['Qwen3VLForConditionalGeneration'],
    model_type: 'qwen3_vl',
    image_token_id: imageTokenId,
    video_token_id: 8,
    tie_word_embeddings: tied,
    text_config: {
      vocab_size: vocabularySize,
      hidden_size: 32,
      intermediate_size: 64,
      num_hidden_layers: 3,
      num_attention_heads: 4,
      num_key_value_heads: 2,
      head_dim: 16,
      hidden_act: 'silu',
      max_position_embeddings: contextLength,
      rms_norm_eps: 1e-6,
      attention_bias: false,
      rope_theta: 10000,
      rope_scaling: { rope_type: 'default', mrope_interleaved: true, mrope_section: [4, 2, 2] },
    },
    vision_config: {
      depth: 2,
      hidden_size: 32,
      intermediate_size: 64,
      num_heads: 2,
      in_channels: 3,
      patch_size: 16,
      temporal_patch_size: 2,
      spatial_merge_size: 2,
      out_hidden_size: 32,
      num_position_embeddings: 16,
      deepstack_visual_indexes: [0],
      hidden_act: 'gelu_pytorch_tanh',
    },
  };
}

function tinyPreprocessor() {
  return {
    patch_size: 16,
    temporal_patch_size: 2,
    merge_size: 2,
    image_mean: [0.5, 0.5, 0.5],
    image_std: [0.5, 0.5, 0.5],
    size: { shortest_edge: 96 * 96, longest_edge: 96 * 96 },
  };
}

function randomTensors(
  { text_config: text, vision_config: vision, tie_word_embeddings }: ReturnType<typeof tinyConfig>,
  dtype: string,
): Tensors {
  const random = createRandom(17);
  const tensors: Tensors = new Map();
  const add = (name: string, ...shape: number[]): void => {
    const fanIn = shape.slice(1).reduce((product, side) => product * side, 1);
    const norm = name.includes('norm') && name.endsWith('weight');
    const values = Array.from({ length: (shape[0] ?? 1) * fanIn }, () => {
      const spread = (random() + random() + random() - 1.5) * 2;
      return norm ? 1 + 0.2 * spread : spread / Math.sqrt(fanIn === 1 ? 100 : name.includes('embed_tokens') ? 4 : fanIn);
    });
    tensors.set(name, { dtype, shape, data: encode(values, dtype) });
  };
  const linear = (name: string, inputs: number, outputs: number): void => {
    add(`${name}.weight`, outputs, inputs);
    add(`${name}.bias`, outputs);
  };
  const norm = (name: string, size: number): void => {
    add(`${name}.weight`, size);
    add(`${name}.bias`, size);
  };
  const width = text.head_dim;
  add('model.language_model.embed_tokens.weight', text.vocab_size, text.hidden_size);
  for (let index = 0; index < text.num_hidden_layers; index++) {
    const name = `model.language_model.layers.${index}`;
    add(`${name}.input_layernorm.weight`, text.hidden_size);
    add(`${name}.post_attention_layernorm.weight`, text.hidden_size);
    add(`${name}.self_attn.q_proj.weight`, text.num_attention_heads * width, text.hidden_size);
    add(`${name}.self_attn.k_proj.weight`, text.num_key_value_heads * width, text.hidden_size);
    add(`${name}.self_attn.v_proj.weight`, text.num_key_value_heads * width, text.hidden_size);
    add(`${name}.self_attn.o_proj.weight`, text.hidden_size, text.num_attention_heads * width);
    add(`${name}.self_attn.q_norm.weight`, width);
    add(`${name}.self_attn.k_norm.weight`, width);
    add(`${name}.mlp.gate_proj.weight`, text.intermediate_size, text.hidden_size);
    add(`${name}.mlp.up_proj.weight`, text.intermediate_size, text.hidden_size);
    add(`${name}.mlp.down_proj.weight`, text.hidden_size, text.intermediate_size);
  }
  add('model.language_model.norm.weight', text.hidden_size);
  if (!tie_word_embeddings) add('lm_head.weight', text.vocab_size, text.hidden_size);
  const size = vision.hidden_size;
  const merged = size * vision.spatial_merge_size ** 2;
  add('model.visual.patch_embed.proj.weight', size, 3, vision.temporal_patch_size, vision.patch_size, vision.patch_size);
  add('model.visual.patch_embed.proj.bias', size);
  add('model.visual.pos_embed.weight', vision.num_position_embeddings, size);
  for (let index = 0; index < vision.depth; index++) {
    const name = `model.visual.blocks.${index}`;
    norm(`${name}.norm1`, size);
    norm(`${name}.norm2`, size);
    linear(`${name}.attn.qkv`, size, 3 * size);
    linear(`${name}.attn.proj`, size, size);
    linear(`${name}.mlp.linear_fc1`, size, vision.intermediate_size);
    linear(`${name}.mlp.linear_fc2`, vision.intermediate_size, size);
  }
  for (const [name, normSize] of [
    ['merger', size],
    ['deepstack_merger_list.0', merged],
  ] as const) {
    norm(`model.visual.${name}.norm`, normSize);
    linear(`model.visual.${name}.linear_fc1`, merged, merged);
    linear(`model.visual.${name}.linear_fc2`, merged, vision.out_hidden_size);
  }
  return tensors;
}

function encode(values: readonly number[], dtype: string): Buffer {
  const floats = Float32Array.from(values);
  if (dtype === 'F32') return Buffer.from(floats.buffer);
  const bits = new Uint32Array(floats.buffer);
  const halves = Uint16Array.from(bits, (word, i) => (dtype === 'BF16' ? word >>> 16 : toHalf(floats[i] ?? 0)));
  return Buffer.from(halves.buffer);
}

/** IEEE half precision of a number of ordinary size, rounded towards zero. */
function toHalf(value: number): number {
  const magnitude = Math.abs(value);
  if (magnitude < 2 ** -14) return Math.trunc(magnitude * 2 ** 24) | (value < 0 ? 0x8000 : 0);
  const exponent = Math.floor(Math.log2(magnitude));
  const fraction = Math.trunc((magnitude / 2 ** exponent - 1) * 1024);
  return ((exponent + 15) << 10) | fraction | (value < 0 ? 0x8000 : 0);
}
