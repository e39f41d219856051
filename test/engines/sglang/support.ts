// What the tests of the SGLang engine share: a model folder, pictures, contexts, an engine over a stand-in.
import { createHash } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import sharp from 'sharp';
import { onTestFinished } from 'vitest';
import { Context } from '../../../src/agent/context.js';
import type { CallRecord } from '../../../src/engines/sglang/calls.js';
import { createSglangEngine, type SglangEngine } from '../../../src/engines/sglang/engine.js';
import type { SglangOptions } from '../../../src/engines/sglang/options.js';
import { REAL_SURROUNDINGS } from '../../../src/engines/sglang/surroundings.js';
import type { Image, Sampling, TokenContext } from '../../../src/types.js';
import { createHashEngine, HASH_ENGINE_INFO } from './hash-engine.js';
import { type StandIn, type StandInOptions, startStandIn } from './stand-in.js';

export const PAD = 500;
export const VISION = [498, PAD, 499];
export const STOP = 497;
const { geometry } = HASH_ENGINE_INFO;

export const SAMPLING: Sampling = { maxNewTokens: 8, temperature: 0, topP: 1, topK: 0, seed: 7, stopIds: [STOP], bannedIds: [] };
export const CANDIDATES = [
  [31, 32, 33, 34, 35],
  [41, 42],
  [51, 52, 53, 54, 55, 56, 57],
];

export async function modelFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'ssr-sglang-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const config = {
    text_config: { vocab_size: HASH_ENGINE_INFO.vocabularySize, max_position_embeddings: HASH_ENGINE_INFO.contextLength },
    image_token_id: PAD,
    vision_start_token_id: 498,
    vision_end_token_id: 499,
  };
  const preprocessor = {
    patch_size: geometry.patchSize,
    merge_size: geometry.mergeSize,
    size: { shortest_edge: geometry.minPixels, longest_edge: geometry.maxPixels },
  };
  await writeFile(join(folder, 'config.json'), JSON.stringify(config));
  await writeFile(join(folder, 'preprocessor_config.json'), JSON.stringify(preprocessor));
  return folder;
}

export async function standIn(options: Partial<StandInOptions> = {}, msPerToken = 0): Promise<StandIn> {
  const server = await startStandIn(createHashEngine(1, msPerToken), { imagePadId: PAD, ...options });
  onTestFinished(() => server.close());
  return server;
}

export interface Fixture {
  readonly engine: SglangEngine;
  readonly calls: CallRecord[];
}

/** Retries wait a hundredth of their time. */
export async function sglang(urls: readonly string[], options: Partial<SglangOptions> = {}): Promise<Fixture> {
  const calls: CallRecord[] = [];
  const engine = await createSglangEngine({
    urls,
    modelFolder: await modelFolder(),
    isolationKey: 'test',
    retry: { attempts: 3, baseDelayMs: 20, greatestDelayMs: 50, greatestRetryAfterMs: 2_000 },
    surroundings: REAL_SURROUNDINGS,
    requestTimeoutMs: 5_000,
    generateTimeoutMs: 5_000,
    preflightTimeoutMs: 5_000,
    onCall: (call) => calls.push(call),
    ...options,
  });
  onTestFinished(() => engine.close());
  return { engine, calls };
}

export async function picture(width: number, height: number, colour: string, format: 'png' | 'jpeg' = 'png'): Promise<Image> {
  const bytes = await sharp({ create: { width, height, channels: 3, background: colour } })
    [format]()
    .toBuffer();
  return { sha256: createHash('sha256').update(bytes).digest('hex'), bytes, mediaType: `image/${format}`, width, height };
}

export function context(trajectory: string, ids: readonly number[], images: readonly Image[] = []): Context {
  const made = new Context(trajectory, geometry, PAD);
  made.append(ids, images);
  return made;
}

export function range(from: number, count: number): number[] {
  return Array.from({ length: count }, (_, i) => from + (i % 400));
}

/** What the hash engine says of the same context: the truth that a client must bring back unchanged. */
export async function truth(history: TokenContext, continuations: readonly (readonly number[])[]): Promise<number[][]> {
  const { rows } = await createHashEngine().score(history, continuations);
  return rows.map((row) => row.map(({ logprob }) => logprob));
}

export function numbers(rows: readonly (readonly { readonly logprob: number }[])[]): number[][] {
  return rows.map((row) => row.map(({ logprob }) => logprob));
}
