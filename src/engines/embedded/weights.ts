// The model's tensors: their names and shapes in a checkpoint, and where they lie in the kernels' memory.
import type { ModelConfig, TextConfig, VisionConfig } from './checkpoint-config.js';
import type { Pointer } from './kernels.js';

/** y = x · Wᵀ + bias. Several checkpoint tensors may be stacked into one matrix. */
export interface Linear {
  readonly packed: Pointer;
  /** 0 where there is none. */
  readonly bias: Pointer;
  readonly inputs: number;
  readonly outputs: number;
}

export interface LayerNorm {
  readonly weight: Pointer;
  readonly bias: Pointer;
}

export interface TextLayer {
  readonly inputNorm: Pointer;
  readonly query: Linear;
  /** Keys, then values. */
  readonly keyValue: Linear;
  readonly queryNorm: Pointer;
  readonly keyNorm: Pointer;
  readonly attentionOutput: Linear;
  readonly feedForwardNorm: Pointer;
  /** Gate, then up. */
  readonly gateUp: Linear;
  readonly down: Linear;
}

export interface VisionBlock {
  readonly attentionNorm: LayerNorm;
  readonly queryKeyValue: Linear;
  readonly attentionOutput: Linear;
  readonly feedForwardNorm: LayerNorm;
  readonly up: Linear;
  readonly down: Linear;
}

export interface PatchMerger {
  readonly norm: LayerNorm;
  readonly first: Linear;
  readonly second: Linear;
}

export interface Weights {
  readonly text: {
    readonly embedding: Linear;
    readonly layers: readonly TextLayer[];
    readonly norm: Pointer;
    readonly head: Linear;
  };
  readonly vision: {
    readonly patchEmbedding: Linear;
    /** positionSide² rows of hiddenSize floats. */
    readonly positions: Pointer;
    readonly blocks: readonly VisionBlock[];
    readonly merger: PatchMerger;
    /** One per deepStackBlocks entry. */
    readonly deepStackMergers: readonly PatchMerger[];
  };
}

/** One tensor seen as a matrix of `outputs` rows and `inputs` columns. */
export interface MatrixPart {
  readonly name: string;
  readonly outputs: number;
}

/** Either checks tensors or loads them; the walk over the model below is the same. */
export interface TensorReader {
  matrix(parts: readonly MatrixPart[], inputs: number, bias: readonly string[]): Linear;
  vector(name: string, shape: readonly number[]): Pointer;
  /** Conv3d weight [outputs, 3, frames, side, side]; a still picture repeats its frame, so the frames' weights are summed. */
  patchEmbedding(name: string, vision: VisionConfig, bias: string): Linear;
}

/** Walks over all tensors of the model in memory order. */
export function readWeights(config: ModelConfig, reader: TensorReader): Weights {
  const { text, vision } = config;
  const model = 'model.language_model';
  const embedding = reader.matrix([{ name: `${model}.embed_tokens.weight`, outputs: text.vocabularySize }], text.hiddenSize, []);
  return {
    text: {
      embedding,
      layers: times(text.layers, (index) => textLayer(text, reader, `${model}.layers.${index}`)),
      norm: reader.vector(`${model}.norm.weight`, [text.hiddenSize]),
      head: config.tiedEmbeddings
        ? embedding
        : reader.matrix([{ name: 'lm_head.weight', outputs: text.vocabularySize }], text.hiddenSize, []),
    },
    vision: visionWeights(vision, reader, 'model.visual'),
  };
}

function textLayer(text: TextConfig, reader: TensorReader, name: string): TextLayer {
  const attention = `${name}.self_attn`;
  const keyValueWidth = text.keyValueHeads * text.headWidth;
  const biasOf = (...projections: string[]) => (text.attentionBias ? projections.map((part) => `${attention}.${part}.bias`) : []);
  const part = (tensor: string, outputs: number): MatrixPart => ({ name: `${name}.${tensor}.weight`, outputs });
  return {
    inputNorm: reader.vector(`${name}.input_layernorm.weight`, [text.hiddenSize]),
    query: reader.matrix([part('self_attn.q_proj', text.heads * text.headWidth)], text.hiddenSize, biasOf('q_proj')),
    keyValue: reader.matrix(
      [part('self_attn.k_proj', keyValueWidth), part('self_attn.v_proj', keyValueWidth)],
      text.hiddenSize,
      biasOf('k_proj', 'v_proj'),
    ),
    queryNorm: reader.vector(`${attention}.q_norm.weight`, [text.headWidth]),
    keyNorm: reader.vector(`${attention}.k_norm.weight`, [text.headWidth]),
    attentionOutput: reader.matrix([part('self_attn.o_proj', text.hiddenSize)], text.heads * text.headWidth, biasOf('o_proj')),
    feedForwardNorm: reader.vector(`${name}.post_attention_layernorm.weight`, [text.hiddenSize]),
    gateUp: reader.matrix(
      [part('mlp.gate_proj', text.feedForwardSize), part('mlp.up_proj', text.feedForwardSize)],
      text.hiddenSize,
      [],
    ),
    down: reader.matrix([part('mlp.down_proj', text.hiddenSize)], text.feedForwardSize, []),
  };
}

function visionWeights(vision: VisionConfig, reader: TensorReader, name: string): Weights['vision'] {
  const mergedSize = vision.hiddenSize * vision.mergeSize ** 2;
  return {
    patchEmbedding: reader.patchEmbedding(`${name}.patch_embed.proj.weight`, vision, `${name}.patch_embed.proj.bias`),
    positions: reader.vector(`${name}.pos_embed.weight`, [vision.positionSide ** 2, vision.hiddenSize]),
    blocks: times(vision.depth, (index) => visionBlock(vision, reader, `${name}.blocks.${index}`)),
    merger: merger(vision, reader, `${name}.merger`, vision.hiddenSize),
    deepStackMergers: vision.deepStackBlocks.map((_, index) =>
      merger(vision, reader, `${name}.deepstack_merger_list.${index}`, mergedSize),
    ),
  };
}

function visionBlock(vision: VisionConfig, reader: TensorReader, name: string): VisionBlock {
  const size = vision.hiddenSize;
  return {
    attentionNorm: layerNorm(reader, `${name}.norm1`, size),
    queryKeyValue: linear(reader, `${name}.attn.qkv`, size, 3 * size),
    attentionOutput: linear(reader, `${name}.attn.proj`, size, size),
    feedForwardNorm: layerNorm(reader, `${name}.norm2`, size),
    up: linear(reader, `${name}.mlp.linear_fc1`, size, vision.feedForwardSize),
    down: linear(reader, `${name}.mlp.linear_fc2`, vision.feedForwardSize, size),
  };
}

function merger(vision: VisionConfig, reader: TensorReader, name: string, normSize: number): PatchMerger {
  const mergedSize = vision.hiddenSize * vision.mergeSize ** 2;
  return {
    norm: layerNorm(reader, `${name}.norm`, normSize),
    first: linear(reader, `${name}.linear_fc1`, mergedSize, mergedSize),
    second: linear(reader, `${name}.linear_fc2`, mergedSize, vision.outputSize),
  };
}

function linear(reader: TensorReader, name: string, inputs: number, outputs: number): Linear {
  return reader.matrix([{ name: `${name}.weight`, outputs }], inputs, [`${name}.bias`]);
}

function layerNorm(reader: TensorReader, name: string, size: number): LayerNorm {
  return { weight: reader.vector(`${name}.weight`, [size]), bias: reader.vector(`${name}.bias`, [size]) };
}

function times<T>(count: number, make: (index: number) => T): T[] {
  return Array.from({ length: count }, (_, index) => make(index));
}

/** Shape of the patch embedding's convolution in a checkpoint. */
export function patchShape(vision: VisionConfig): readonly number[] {
  return [vision.hiddenSize, 3, vision.temporalPatchSize, vision.patchSize, vision.patchSize];
}

/** Values of one patch of a still picture. */
export function patchInputs(vision: VisionConfig): number {
  return 3 * vision.patchSize ** 2;
}
