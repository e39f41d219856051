// `ssr power`: how many questions tell a difference of so many points from none, or what so many questions can tell.
import type { Command } from 'commander';
import { UsageError } from '../../errors.js';
import { mcNemarPower, questionsNeeded } from '../../evaluation/paired-power.js';

interface PowerFlags {
  readonly difference: string;
  readonly discordant: string;
  readonly power: string;
  readonly questions?: string;
}

export function addPowerCommand(program: Command): void {
  program
    .command('power')
    .description('questions that a paired comparison needs, by the exact McNemar test at 5%')
    .requiredOption('--difference <points>', 'true difference of the success rates, in percentage points')
    .requiredOption('--discordant <points>', 'questions on which the arms differ at all, in percent (see ssr compare)')
    .option('--power <percent>', 'how often the difference shall be found', '80')
    .option('--questions <n>', 'instead: the power that n questions have')
    .addHelpText(
      'after',
      `
Examples:
  ssr power --difference 2 --discordant 10
  ssr power --difference 2 --discordant 10 --questions 400`,
    )
    .action(({ difference, discordant, power, questions }: PowerFlags) => {
      const options = { difference: percent(difference, '--difference'), discordant: percent(discordant, '--discordant') };
      if (options.difference > options.discordant) {
        throw new UsageError('the arms cannot differ by more than they differ at all', {
          where: '--difference',
          expected: `at most ${discordant}`,
          found: difference,
        });
      }
      process.stdout.write(questions === undefined ? needed(percent(power, '--power'), options) : reached(questions, options));
    });
}

function needed(power: number, options: { readonly difference: number; readonly discordant: number }): string {
  const n = power < 1 ? questionsNeeded(power, options) : null;
  return n === null
    ? 'More than a million questions.\n'
    : `${n} questions find the difference with a power of ${100 * power}%.\n`;
}

function reached(questions: string, options: { readonly difference: number; readonly discordant: number }): string {
  const n = Number(questions);
  if (!Number.isInteger(n) || n < 1) {
    throw new UsageError('not a count', { where: '--questions', expected: 'a whole number of at least 1', found: questions });
  }
  return `${n} questions find the difference with a power of ${(100 * mcNemarPower(n, options)).toFixed(1)}%.\n`;
}

function percent(text: string, where: string): number {
  const value = Number(text);
  if (text.trim() === '' || !(value > 0 && value <= 100)) {
    throw new UsageError('not a share', { where, expected: 'a number above 0 and up to 100', found: text });
  }
  return value / 100;
}
