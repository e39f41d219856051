// The configuration of training by reinforcement, validated once. Paths are relative to the file.
import { readFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { z } from 'zod';
import { UsageError } from '../errors.js';
import { packageRoot } from '../paths.js';
import { DEFAULT_REWARDS } from '../training/rewards.js';
import { type Config, configSchema } from './options.js';
import { resolvePaths } from './settings.js';

const positive = z.number().int().min(1);
const text = z.string().min(1);
const benchmark = { benchmark: text, split: text.optional(), data: text.optional() };
/** Values that the trainer checks itself; ObjectiveSettings and RlOptimiserSettings list them. */
const values = z.record(z.string(), z.union([z.number(), z.string(), z.boolean()]));

const schema = z.strictObject({
  /** Checkpoint folder to start from. */
  model: text,
  /** Folder of the run. */
  run: text,
  /** Optimizer steps, one per minibatch. */
  steps: positive,
  /** Questions per minibatch, and trajectories per question. */
  questions: positive,
  group: positive,
  seed: z.number().int().min(0).default(1),
  sources: z
    .array(
      z.strictObject({
        ...benchmark,
        weight: z.number().gt(0).default(1),
        types: z.record(z.string(), z.number().gt(0)).optional(),
      }),
    )
    .min(1),
  heldOut: z.strictObject({ ...benchmark, limit: positive.optional(), every: positive }),
  rewards: z
    .strictObject({ outcome: z.number().min(0), format: z.number().min(0), efficiency: z.number().min(0) })
    .partial()
    .default({}),
  /** Fields of a run: tau, temperature, library, prompt, maxTurns, engine, … */
  harness: configSchema.default({}),
  /** Stop when held-out success falls below this share of the best. */
  collapse: z.number().min(0).max(1).default(0.5),
  trainer: z
    .strictObject({
      /** Interpreter, or a launcher such as `accelerate launch`, with its words. */
      command: z.array(text).min(1).optional(),
      objective: values.default({}),
      optimiser: values.default({}),
      options: values.default({}),
    })
    .prefault({}),
});

export type TrainConfig = z.infer<typeof schema>;

/** What the command line may change. */
export type TrainOverrides = { readonly [K in 'model' | 'run' | 'steps' | 'seed']?: TrainConfig[K] | undefined };

/** Throws UsageError naming the file and the key. */
export async function readTrainConfig(path: string, overrides: TrainOverrides): Promise<TrainConfig> {
  const source = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new UsageError('cannot read the config', { where: path, found: error.code ?? error.message, cause: error });
  });
  let json: unknown;
  try {
    json = JSON.parse(source);
  } catch (error) {
    throw new UsageError('not JSON', { where: path, found: error instanceof Error ? error.message : String(error) });
  }
  const parsed = schema.safeParse(json);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw new UsageError(`${issue?.path.join('.') || 'config'}: ${issue?.message ?? 'malformed'}`, { where: path });
  }
  const given = Object.fromEntries(Object.entries(overrides).filter(([, value]) => value !== undefined));
  return { ...located(parsed.data, dirname(path)), ...given };
}

function located(config: TrainConfig, folder: string): TrainConfig {
  const at = <T extends { data?: string | undefined }>(part: T): T =>
    part.data === undefined ? part : { ...part, data: resolve(folder, part.data) };
  return {
    ...config,
    model: resolve(folder, config.model),
    run: resolve(folder, config.run),
    sources: config.sources.map(at),
    heldOut: at(config.heldOut),
    harness: resolvePaths(config.harness as Config, folder) as TrainConfig['harness'],
  };
}

export function rewardsOf({ rewards }: TrainConfig): typeof DEFAULT_REWARDS {
  const { outcome, format, efficiency } = rewards;
  return {
    outcome: outcome ?? DEFAULT_REWARDS.outcome,
    format: format ?? DEFAULT_REWARDS.format,
    efficiency: efficiency ?? DEFAULT_REWARDS.efficiency,
  };
}

/** The trainer's interpreter unless the config names a command. */
export function trainerCommand({ trainer }: Pick<TrainConfig, 'trainer'>): readonly string[] {
  return trainer.command ?? [join(packageRoot(), 'scripts/trainer/.venv/bin/python')];
}

/** train_rl.py's own configuration; RlConfig describes it. */
export function trainerConfig(config: TrainConfig, objective: string, reasoning: string): Record<string, unknown> {
  const { model, seed, trainer } = config;
  return {
    seed,
    ...trainer.options,
    reasoning,
    model,
    run: 'trainer',
    objective: { ...trainer.objective, objective },
    optimiser: trainer.optimiser,
  };
}
