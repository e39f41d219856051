// What makes a training run the run it is: a folder is only continued with the same settings.
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { UsageError } from '../errors.js';
import { identityOf, type Settings } from './options.js';
import { rewardsOf, type TrainConfig } from './train-config.js';

/** Writes the identity into a new folder; throws UsageError naming the setting in which the run there differs. */
export async function requireSameTraining(config: TrainConfig, objective: string, settings: Settings): Promise<void> {
  const path = join(config.run, 'identity.json');
  const identity = JSON.parse(JSON.stringify(identityOfTraining(config, objective, settings))) as Record<string, unknown>;
  const source = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw error;
  });
  if (source === null) return writeFile(path, `${JSON.stringify(identity, null, 2)}\n`);
  const known = JSON.parse(source) as Record<string, unknown>;
  for (const name of new Set([...Object.keys(known), ...Object.keys(identity)])) {
    const [expected, found] = [JSON.stringify(known[name]), JSON.stringify(identity[name])];
    if (expected === found) continue;
    throw new UsageError(`the folder holds a run with another ${name}`, {
      where: config.run,
      expected: expected ?? 'none',
      found: found ?? 'none',
      remedy: 'Name another folder with --run.',
    });
  }
}

/** Steps, how often to evaluate and where things run may change; what is learnt from may not. */
function identityOfTraining(config: TrainConfig, objective: string, settings: Settings): Record<string, unknown> {
  const { model, seed, questions, group, sources, heldOut, trainer } = config;
  const { every: _, ...held } = heldOut;
  return {
    objective,
    model,
    seed,
    questions,
    group,
    sources,
    heldOut: held,
    rewards: rewardsOf(config),
    harness: identityOf(settings),
    library: settings.library,
    prompt: settings.prompt,
    trainerObjective: trainer.objective,
    optimiser: trainer.optimiser,
  };
}
