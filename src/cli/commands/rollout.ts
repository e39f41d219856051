// `ssr rollout`: one minibatch of Algorithm 2 as a folder for the trainer.
import { relative } from 'node:path';
import type { Command } from 'commander';
import { UsageError } from '../../errors.js';
import { writeMinibatch } from '../../training/minibatch.js';
import { describeRollout } from '../../training/progress.js';
import { DEFAULT_REWARDS } from '../../training/rewards.js';
import { type CommandContext, EXIT } from '../exit.js';
import { fieldOption } from '../field-option.js';
import { FIELDS, type FieldName } from '../options.js';
import { rollOutFrom, streamOf } from '../rollout.js';
import { type Flags, readSettings } from '../settings.js';
import { stoppable } from '../stoppable.js';
import { wire } from '../wire.js';

interface RolloutFlags {
  readonly config?: string;
  readonly group: string;
  readonly questions: string;
  readonly step: string;
  readonly outcomeReward: string;
  readonly formatReward: string;
  readonly efficiencyReward: string;
}

/** Fields of a run that a minibatch has its own words for. */
const UNUSED: readonly FieldName[] = ['limit', 'sample', 'ids', 'minSuccess', 'maxErrorRate'];

export function addRolloutCommand(program: Command, context: CommandContext): void {
  const command = program.command('rollout').description('draw one minibatch of trajectories for training by reinforcement');
  for (const name of Object.keys(FIELDS) as FieldName[]) {
    if (UNUSED.includes(name)) continue;
    command.addOption(fieldOption(name));
  }
  command
    .option('--config <file>', 'JSON file with the same fields; flags win over it')
    .option('--group <n>', 'trajectories per question', '8')
    .option('--questions <n>', 'questions', '16')
    .option('--step <n>', 'which minibatch of the seeded stream of questions', '0')
    .option('--outcome-reward <x>', 'reward of a right answer', String(DEFAULT_REWARDS.outcome))
    .option('--format-reward <x>', 'reward of a well-formed trajectory', String(DEFAULT_REWARDS.format))
    .option('--efficiency-reward <x>', 'reward of the shortest right answer in its group', String(DEFAULT_REWARDS.efficiency))
    .addHelpText(
      'after',
      `
tau and temperature default to 1. The folder gets rollouts.jsonl and images/; docs/training.md describes them.

Example:
  ssr rollout --benchmark micro --split train --data results/micro-data --group 8 --questions 16 --output results/minibatch`,
    )
    .action(async (flags: Flags & RolloutFlags) => {
      if (!(await drawMinibatch(flags))) context.setExitCode(EXIT.interrupted);
    });
}

/** Whether it was drawn: false when it was interrupted. */
async function drawMinibatch({
  config,
  group,
  questions,
  step,
  outcomeReward,
  formatReward,
  efficiencyReward,
  ...flags
}: Flags & RolloutFlags): Promise<boolean> {
  const settings = await readSettings({ tau: '1', temperature: '1', ...flags }, config, process.cwd());
  const { output } = settings;
  if (output === undefined) throw new UsageError('no place for the minibatch', { expected: '--output FOLDER' });
  const rewards = {
    outcome: amount('--outcome-reward', outcomeReward),
    format: amount('--format-reward', formatReward),
    efficiency: amount('--efficiency-reward', efficiencyReward),
  };
  const [perGroup, perStep] = [wholeNumber('--group', group, 1), wholeNumber('--questions', questions, 1)];
  const number = wholeNumber('--step', step, 0);
  const wiring = await wire(settings, process.env);
  try {
    const drawn = streamOf([{ wiring, weight: 1 }], perStep, settings.seed)(number);
    const minibatch = await stoppable((signal) =>
      rollOutFrom([wiring], settings, { questions: drawn, step: number, group: perGroup, rewards, signal }),
    );
    if (minibatch === null) return false;
    await writeMinibatch(output, minibatch, minibatch.images);
    process.stdout.write(`${describeRollout(minibatch)}\nMinibatch: ${relative(process.cwd(), output) || output}\n`);
    return true;
  } finally {
    await wiring.agent.engine.close();
  }
}

function wholeNumber(flag: string, text: string, least: number): number {
  const value = Number(text);
  if (text.trim() !== '' && Number.isInteger(value) && value >= least) return value;
  throw new UsageError('not a count', { where: flag, expected: `a whole number, at least ${least}`, found: text });
}

function amount(flag: string, text: string): number {
  const value = Number(text);
  if (text.trim() !== '' && value >= 0) return value;
  throw new UsageError('not an amount', { where: flag, expected: 'a number of at least 0', found: text });
}
