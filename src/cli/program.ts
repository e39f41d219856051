// The command tree of `ssr`.
import { Command } from 'commander';
import { addCompareCommand } from './commands/compare.js';
import { addDataCommand } from './commands/data.js';
import { addDoctorCommand } from './commands/doctor.js';
import { addEvalCommand } from './commands/eval.js';
import { addJudgeCommand } from './commands/judge.js';
import { addLibraryCommand } from './commands/library.js';
import { addPowerCommand } from './commands/power.js';
import { addProfileCommand } from './commands/profile.js';
import { addReportCommand } from './commands/report.js';
import { addRolloutCommand } from './commands/rollout.js';
import { addServeCommand } from './commands/serve.js';
import { addShowCommand } from './commands/show.js';
import { addToolCommands } from './commands/tool.js';
import { addTrainCommand } from './commands/train.js';
import type { CommandContext } from './exit.js';
import { packageVersion } from './version.js';

export function createProgram(context: CommandContext): Command {
  const program = new Command('ssr')
    .description('Runs multimodal search agents that choose their reasoning from a library instead of writing it.')
    .version(packageVersion())
    .exitOverride()
    .showHelpAfterError('(ssr --help lists commands and options)')
    .addHelpText(
      'after',
      `
Examples:
  ssr eval --benchmark micro                 the whole system on this machine, nothing else needed
  ssr eval --benchmark micro --split hard    a harder split of the same world
  ssr show results/RUN --wrong               what went wrong, question by question
  ssr data prepare mmsearch                  a published benchmark, from its source to a checked folder
  ssr report results/RUN --against paper     success with intervals and errors beside the published figures
  ssr compare freeform ssr --benchmark micro ways of reasoning on the same questions, with tests and intervals
  ssr profile --benchmark micro --samples 100 where the time goes, phase by phase
  ssr library check my-library.json          what a reasoning library costs and whether it is sound

Exit codes: 0 done · 1 usage · 2 engine unreachable · 3 too many errors · 4 data · 100 success below --min-success · 130 interrupted`,
    );
  addEvalCommand(program, context);
  addShowCommand(program);
  addLibraryCommand(program, context);
  addToolCommands(program);
  addServeCommand(program);
  addDoctorCommand(program, context);
  addDataCommand(program, context);
  addJudgeCommand(program, context);
  addReportCommand(program);
  addRolloutCommand(program, context);
  addTrainCommand(program, context);
  addCompareCommand(program, context);
  addProfileCommand(program, context);
  addPowerCommand(program);
  return program;
}
