// A checkpoint that cannot be run is refused before any work, with the tensor, the file and the expectation in one line.
import { readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openCheckpoint } from '../../../src/engines/embedded/checkpoint.js';
import { createEmbeddedEngine } from '../../../src/engines/embedded/engine.js';
import { CheckpointError } from '../../../src/errors.js';
import { neverAborted, openRunner } from './open-runner.js';
import {
  type CheckpointOptions,
  randomIds,
  safetensors,
  type Tensors,
  textContext,
  writeTinyCheckpoint,
} from './tiny-checkpoint.js';

const gate = 'model.language_model.layers.1.mlp.gate_proj.weight';

const broken: readonly (readonly [string, CheckpointOptions, RegExp])[] = [
  [
    'a missing tensor',
    { tensors: (tensors) => tensors.delete(gate) },
    /tensor model\.language_model\.layers\.1\.mlp\.gate_proj\.weight is missing; expected shape \[64, 32\]/,
  ],
  [
    'a tensor of a wrong shape',
    { tensors: (tensors) => (tensorOf(tensors, gate).shape = [32, 64]) },
    /model\.safetensors: tensor .*gate_proj\.weight has a wrong shape; expected \[64, 32\], found \[32, 64\]/,
  ],
  [
    'a tensor of a type we cannot read',
    { tensors: (tensors) => (tensorOf(tensors, gate).dtype = 'F8_E4M3') },
    /tensor .*gate_proj\.weight has an unsupported type; expected F32, BF16, F16, found F8_E4M3/,
  ],
  [
    'offsets that contradict the shape',
    { tensors: (tensors) => (tensorOf(tensors, gate).data = Buffer.alloc(100)) },
    /header's offsets of tensor .*gate_proj\.weight contradict its shape; expected 8192 bytes for F32 \[64, 32\], found 100/,
  ],
  [
    'a truncated file',
    { bytes: (bytes) => bytes.subarray(0, bytes.length - 1000) },
    /truncated: tensor model\.visual\..* ends beyond the file/,
  ],
  ['a file cut inside its header', { bytes: (bytes) => bytes.subarray(0, 200) }, /truncated or not a safetensors file/],
  ['a file that is no safetensors', { bytes: () => Buffer.from('not tensors at all') }, /truncated or not a safetensors file/],
  [
    'another architecture',
    { config: (config) => ({ ...config, architectures: ['LlamaForCausalLM'] }) },
    /unsupported architecture; expected Qwen3VLForConditionalGeneration, found LlamaForCausalLM/,
  ],
  [
    'an unsupported kind of rope',
    { config: (config) => ({ ...config, text_config: { ...config.text_config, rope_scaling: { rope_type: 'yarn' } } }) },
    /unsupported rope type; expected default, found yarn/,
  ],
  [
    'an activation we do not have',
    { config: (config) => ({ ...config, text_config: { ...config.text_config, hidden_act: 'relu' } }) },
    /text_config\.hidden_act: .*"silu"/,
  ],
  [
    'heads that do not divide',
    { config: (config) => ({ ...config, text_config: { ...config.text_config, num_key_value_heads: 3 } }) },
    /num_attention_heads must be a multiple of num_key_value_heads/,
  ],
];

describe('a broken checkpoint', () => {
  it.each(broken)('%s is refused', async (_name, options, message) => {
    const directory = await writeTinyCheckpoint(options);
    const error = await createEmbeddedEngine(directory).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(CheckpointError);
    expect((error as Error).message).toMatch(message);
    expect((error as Error).message).not.toContain('\n');
  });

  it('weights beyond what 32 bits address are refused with both sizes', async () => {
    const rows = 40_000_000;
    const directory = await writeTinyCheckpoint({
      config: (config) => ({ ...config, text_config: { ...config.text_config, vocab_size: rows } }),
    });
    await enlargeEmbedding(directory, rows);
    await expect(createEmbeddedEngine(directory)).rejects.toThrow(
      /too big for the embedded engine; expected at most 4039 MB of float32 weights .*, found 51\d\d MB/,
    );
  });

  it('a folder that is not there is refused with its path', async () => {
    await expect(createEmbeddedEngine('/no/such/folder')).rejects.toThrow(/\/no\/such\/folder\/config\.json: cannot be read/);
  });

  it('a folder without weights is refused', async () => {
    const directory = await writeTinyCheckpoint();
    await rm(join(directory, 'model.safetensors'));
    await expect(createEmbeddedEngine(directory)).rejects.toThrow(/model\.safetensors: the weights are missing/);
  });
});

describe('a sound checkpoint', () => {
  const scores = async (directory: string) => {
    const runner = await openRunner(directory);
    const { rows } = await runner.score(textContext('t', 20), [randomIds(6, 2)], neverAborted);
    return rows.flat().map(({ logprob }) => logprob);
  };

  it('may be split over several files', async () => {
    const parts: [Tensors, Tensors] = [new Map(), new Map()];
    const directory = await writeTinyCheckpoint({
      tensors: (tensors) => {
        for (const [index, [name, tensor]] of [...tensors].entries()) parts[index % 2]?.set(name, tensor);
      },
    });
    const whole = await scores(directory);
    const weight_map: Record<string, string> = {};
    for (const [index, part] of parts.entries()) {
      const file = `model-0000${index + 1}-of-00002.safetensors`;
      await writeFile(join(directory, file), safetensors(part));
      for (const name of part.keys()) weight_map[name] = file;
    }
    await writeFile(join(directory, 'model.safetensors.index.json'), JSON.stringify({ weight_map }));
    await rm(join(directory, 'model.safetensors'));
    expect((await openCheckpoint(directory)).files).toHaveLength(2);
    expect(await scores(directory)).toEqual(whole);
  });

  it('may have its own output matrix', async () => {
    const tied = await scores(await writeTinyCheckpoint());
    const untied = await scores(await writeTinyCheckpoint({ tied: false }));
    expect(untied).toHaveLength(6);
    expect(untied).not.toEqual(tied);
  });

  it.each(['BF16', 'F16'] as const)('may be stored in %s', async (dtype) => {
    const full = await scores(await writeTinyCheckpoint());
    const half = await scores(await writeTinyCheckpoint({ dtype }));
    half.forEach((logprob, i) => {
      expect(Math.abs(logprob - (full[i] ?? 0))).toBeLessThan(0.3);
    });
    expect(half).not.toEqual(full);
  });

  it('may name its rope as transformers 5 does', async () => {
    const directory = await writeTinyCheckpoint();
    const old = await scores(directory);
    const file = join(directory, 'config.json');
    const config = JSON.parse(await readFile(file, 'utf8')) as { text_config: Record<string, unknown> };
    const { rope_theta, rope_scaling, ...text } = config.text_config;
    const rope_parameters = { ...(rope_scaling as object), rope_theta };
    await writeFile(file, JSON.stringify({ ...config, text_config: { ...text, rope_parameters } }));
    expect(await scores(directory)).toEqual(old);
  });
});

function tensorOf(tensors: Tensors, name: string) {
  const tensor = tensors.get(name);
  if (tensor === undefined) throw new Error(`no tensor ${name}`);
  return tensor;
}

/** Moves the embedding to the end of the file and lets it claim `rows` BF16 rows, which a sparse file holds without disk. */
async function enlargeEmbedding(directory: string, rows: number): Promise<void> {
  const file = join(directory, 'model.safetensors');
  const bytes = await readFile(file);
  const headerLength = Number(bytes.readBigUInt64LE(0));
  const header = JSON.parse(bytes.subarray(8, 8 + headerLength).toString()) as Record<string, object>;
  const begin = bytes.length - 8 - headerLength;
  const end = begin + rows * 32 * 2;
  header['model.language_model.embed_tokens.weight'] = { dtype: 'BF16', shape: [rows, 32], data_offsets: [begin, end] };
  const text = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  await writeFile(file, Buffer.concat([length, text, bytes.subarray(8 + headerLength)]));
  await truncate(file, 8 + text.length + end);
}
