// A minibatch of Algorithm 2 on disk: rollouts.jsonl (one header, one line per trajectory) beside images/. The trainer reads it;
// docs/training.md describes each field, test/golden/rollouts holds files that both test suites read.
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { parseJson } from '../data/json.js';
import { DataError } from '../errors.js';
import type { Image } from '../types.js';

const integer = z.number().int();
const count = integer.min(0);

export const headerSchema = z.object({
  kind: z.literal('header'),
  schema: z.literal(1),
  /** Number of the minibatch in its stream, from 0. */
  step: count,
  seed: integer,
  sources: z.array(z.object({ name: z.string(), split: z.string(), sha256: z.string() })),
  /** Trajectories per question. */
  group: integer.min(1),
  reasoning: z.enum(['ssr', 'freeform']),
  alpha: z.number(),
  /** Temperatures that reasoning and actions were drawn with. */
  tau: z.number().gt(0),
  temperature: z.number().gt(0),
  rewards: z.object({ outcome: z.number(), format: z.number(), efficiency: z.number() }),
  engine: z.string(),
  /** Weights of every turn in the minibatch. */
  weights: z.string(),
  tokenizer: z.string(),
  imagePadId: integer,
  library: z.object({ name: z.string(), candidates: z.array(z.object({ id: z.string(), ids: z.array(integer) })) }),
});

const turnSchema = z.object({
  /** Spans in sent ids: z_t starts at `history`, a_t follows it, then o_t. */
  history: count,
  reasoning: count,
  action: count,
  observation: count,
  /** Null where the model wrote z_t itself. */
  selection: z
    .object({ index: count, candidate: z.string(), scores: z.array(z.number()), logProbability: z.number() })
    .nullable(),
  /** Log-probs of z_t's tokens where the model wrote it. */
  written: z.array(z.number()).nullable(),
  actionLogprobs: z.array(z.number()),
});

export const maskReasons = ['judge-error', 'no-gold', 'tool-error', 'error', 'cancelled'] as const;

export const trajectorySchema = z.object({
  kind: z.literal('trajectory'),
  id: z.string(),
  /** Names the group: all trajectories of one question. */
  question: z.string(),
  type: z.string(),
  seed: integer,
  status: z.string(),
  weights: z.string(),
  correct: z.boolean().nullable(),
  /** Why there is no verdict, and so no reward and no gradient. */
  masked: z.enum(maskReasons).nullable(),
  /** Weighted parts and their sum; null where masked. */
  reward: z.object({
    outcome: z.number().nullable(),
    format: z.number(),
    efficiency: z.number(),
    total: z.number().nullable(),
  }),
  ids: z.array(integer),
  positions: count,
  /** In the order of their image_pad ids. */
  images: z.array(z.object({ sha256: z.string(), file: z.string(), width: count, height: count })),
  turns: z.array(turnSchema),
});

export type MinibatchHeader = z.infer<typeof headerSchema>;
export type Trajectory = z.infer<typeof trajectorySchema>;

export interface Minibatch {
  readonly header: MinibatchHeader;
  readonly trajectories: readonly Trajectory[];
}

const EXTENSIONS: Readonly<Record<string, string>> = {
  'image/png': 'png',
  'image/jpeg': 'jpg',
  'image/webp': 'webp',
  'image/gif': 'gif',
};

export function imageFile({ sha256, mediaType }: Pick<Image, 'sha256' | 'mediaType'>): string {
  return `images/${sha256}.${EXTENSIONS[mediaType] ?? 'bin'}`;
}

/** Writes the folder beside its place and renames it, so that nobody reads half a minibatch. An older one there is replaced. */
export async function writeMinibatch(
  folder: string,
  { header, trajectories }: Minibatch,
  images: Iterable<Image>,
): Promise<void> {
  const waiting = `${folder}.part`;
  await rm(waiting, { recursive: true, force: true });
  await mkdir(join(waiting, 'images'), { recursive: true });
  for (const image of images) await writeFile(join(waiting, imageFile(image)), image.bytes);
  const lines = [header, ...trajectories].map((line) => `${JSON.stringify(line)}\n`);
  await writeFile(join(waiting, 'rollouts.jsonl'), lines.join(''));
  await rm(folder, { recursive: true, force: true });
  await rename(waiting, folder);
}

/** Throws DataError naming file, line and field; mixed weight versions are refused. */
export async function readMinibatch(folder: string): Promise<Minibatch> {
  const path = join(folder, 'rollouts.jsonl');
  const source = await readFile(path, 'utf8').catch((cause: unknown) => {
    throw new DataError('no rollouts', { where: path, cause });
  });
  const [first = '', ...rest] = source.split('\n').filter((line) => line !== '');
  const header = parseJson(first, headerSchema, `${path}:1`);
  const trajectories = rest.map((line, i) => parseJson(line, trajectorySchema, `${path}:${i + 2}`));
  const other = trajectories.find(({ weights }) => weights !== header.weights);
  if (other === undefined) return { header, trajectories };
  throw new DataError('mixed weight versions', { where: `${path}, ${other.id}`, expected: header.weights, found: other.weights });
}
