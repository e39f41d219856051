// `ssr train`: SFT and training by reinforcement, conducted from here, computed by scripts/trainer.
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { execa } from 'execa';
import { UsageError } from '../../errors.js';
import { type CommandContext, EXIT } from '../exit.js';
import { stoppable } from '../stoppable.js';
import { train } from '../train.js';
import { readTrainConfig, trainerCommand } from '../train-config.js';

const OBJECTIVES = ['grpo', 'gspo', 'sapo'] as const;

interface TrainFlags {
  readonly config: string;
  readonly model?: string;
  readonly run?: string;
  readonly steps?: string;
  readonly seed?: string;
}

export function addTrainCommand(program: Command, context: CommandContext): void {
  const command = program
    .command('train')
    .description('train a checkpoint: sft, or grpo, gspo, sapo on rollouts of this harness');
  command
    .command('sft')
    .description('supervised training on trajectories (scripts/trainer/README.md describes the config)')
    .requiredOption('--config <file>', 'JSON configuration of the trainer')
    .action(async ({ config }: { config: string }) => {
      const [python = '', ...words] = trainerCommand({ trainer: { objective: {}, optimiser: {}, options: {} } });
      const { exitCode } = await execa(python, [...words, '-m', 'ssr_trainer.train_sft', resolve(config)], {
        stdio: 'inherit',
        reject: false,
      });
      context.setExitCode(exitCode ?? EXIT.errors);
    });
  for (const objective of OBJECTIVES) {
    command
      .command(objective)
      .description(`training by reinforcement with the objective of ${objective.toUpperCase()}`)
      .requiredOption('--config <file>', 'JSON configuration; configs/training has some, docs/training.md describes it')
      .option('--model <folder>', 'checkpoint to start from, instead of the config file')
      .option('--run <folder>', 'folder of the run, instead of the config file')
      .option('--steps <n>', 'optimizer steps, instead of the config file')
      .option('--seed <n>', 'seed, instead of the config file')
      .addHelpText('after', '\nA folder that holds the same run is continued: every finished step is kept.')
      .action(async (flags: TrainFlags) => context.setExitCode(await run(objective, flags)));
  }
}

async function run(
  objective: (typeof OBJECTIVES)[number],
  { config: path, model, run: folder, steps, seed }: TrainFlags,
): Promise<number> {
  const config = await readTrainConfig(resolve(path), {
    model: model === undefined ? undefined : resolve(model),
    run: folder === undefined ? undefined : resolve(folder),
    steps: wholeNumber('--steps', steps, 1),
    seed: wholeNumber('--seed', seed, 0),
  });
  const say = (line: string): void => void process.stderr.write(`${line}\n`);
  const end = await stoppable((signal) => train({ config, objective, environment: process.env, say, signal }));
  if (end === null) {
    say('Stopped; the same command continues.');
    return EXIT.interrupted;
  }
  if (end.kind === 'diverged') {
    say(
      `Diverged: ${end.reason}. The last whole weights are in ${config.run}/trainer/weights, the best ones in ${config.run}/best.`,
    );
    return EXIT.errors;
  }
  process.stdout.write(`Best weights: ${config.run}/best\nCurves: ${config.run}/curves.csv\n`);
  return EXIT.ok;
}

function wholeNumber(flag: string, text: string | undefined, least: number): number | undefined {
  if (text === undefined) return undefined;
  const value = Number(text);
  if (text.trim() !== '' && Number.isInteger(value) && value >= least) return value;
  throw new UsageError('not a count', { where: flag, expected: `a whole number, at least ${least}`, found: text });
}
