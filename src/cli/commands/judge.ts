// `ssr judge`: a finished run judged, or judged again, without its engine; and how far the two judges agree.
import { resolve } from 'node:path';
import type { Command } from 'commander';
import type { Rate } from '../../evaluation/statistics.js';
import { createCounter } from '../counter.js';
import { type CommandContext, EXIT } from '../exit.js';
import { fieldOption } from '../field-option.js';
import { withSystemErrors } from '../folders.js';
import { type JudgedRun, judgeRun } from '../judge-run.js';
import type { FieldName } from '../options.js';
import { type Flags, parseFlags } from '../settings.js';
import { stoppable } from '../stoppable.js';

type JudgeFlags = Flags & { readonly compare?: boolean; readonly json?: boolean };

const JUDGE_FIELDS: readonly FieldName[] = [
  'judge',
  'judgeUrl',
  'judgeModel',
  'judgeImages',
  'judgeCache',
  'judgeConcurrency',
  'data',
];

export function addJudgeCommand(program: Command, context: CommandContext): void {
  const command = program
    .command('judge <runs...>')
    .description('judge the answers of finished runs again, without their engine');
  for (const name of JUDGE_FIELDS) {
    command.addOption(fieldOption(name));
  }
  command
    .option('--compare', 'only print how far the judge agrees with the verdicts of the run; change nothing')
    .option('--json', 'print JSON')
    .addHelpText('after', judgeHelp)
    .action(async (runs: string[], { compare, json, ...flags }: JudgeFlags) => {
      const all: JudgedRun[] = [];
      for (const run of runs) {
        const judged = await judgeFolder(resolve(run), flags, compare ?? false);
        if (judged === null) {
          process.stderr.write('Interrupted: the run stays as it was; verdicts of a model are kept in the cache.\n');
          return context.setExitCode(EXIT.interrupted);
        }
        all.push(judged);
        if (!json) process.stdout.write(`${runs.length > 1 ? `${run}\n` : ''}${renderJudged(judged, compare ?? false)}\n`);
      }
      if (json) process.stdout.write(`${JSON.stringify(all.length === 1 ? all[0] : all, null, 2)}\n`);
    });
}

const judgeHelp = `
Without options, the run's own judge decides again; what a model has said before comes from the cache. Verdicts, summary and
tables of the run are replaced once every answer is judged. An answer that gets no verdict is a judge error, never a wrong answer.

Examples:
  ssr judge results/RUN --judge llm --judge-url http://localhost:30000/v1 --judge-model Qwen3-32B
  ssr judge results/all-2026-01-31/*                 every run of a folder
  ssr judge results/RUN --judge exact --compare      agreement of the exact judge with the verdicts in the run`;

async function judgeFolder(folder: string, flags: Flags, compareOnly: boolean): Promise<JudgedRun | null> {
  const changes = parseFlags(flags, process.cwd());
  const counter = createCounter('answers', process.stderr, () => performance.now());
  try {
    return await stoppable((signal) =>
      withSystemErrors(() =>
        judgeRun(folder, {
          changes,
          compareOnly,
          environment: process.env,
          signal,
          onStart: counter.start,
          onJudged: counter.add,
        }),
      ),
    );
  } finally {
    counter.stop();
  }
}

function renderJudged({ former, judge, answers, errors, firstError, agreement, success }: JudgedRun, compared: boolean): string {
  const failed = Object.values(errors).reduce((sum, count) => sum + count, 0);
  const { n, bothCorrect, bothWrong, firstOnly, secondOnly, undecided, kappa } = agreement;
  const share = agreement.agreement === null ? 'unknown' : `${(100 * agreement.agreement).toFixed(1)}%`;
  return [
    `${answers} answers judged by ${judge}; before by ${former}${compared ? ' (compared only)' : ''}`,
    ...(failed > 0 ? [`Without a verdict: ${failed}, such as: ${firstError}`] : []),
    `Agreement ${share} (n = ${n}), Cohen's kappa ${kappa === null ? 'undefined (one of them always says the same)' : kappa.toFixed(3)}; both right ${bothCorrect}, both wrong ${bothWrong}`,
    ...ids('Right before, wrong now', firstOnly),
    ...ids('Wrong before, right now', secondOnly),
    ...ids('With a verdict in one of them alone', undecided),
    `Success ${rateText(success.former)} before, ${rateText(success.now)} now`,
  ].join('\n');
}

function ids(what: string, list: readonly string[]): string[] {
  return list.length === 0 ? [] : [`${what} (${list.length}): ${list.join(', ')}`];
}

function rateText({ rate, successes, n }: Rate): string {
  return rate === null ? 'unknown' : `${(100 * rate).toFixed(2)}% (${successes}/${n})`;
}
