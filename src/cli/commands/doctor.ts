// `ssr doctor`: a page of checks against a running SGLang server.
import { randomUUID } from 'node:crypto';
import { join, resolve } from 'node:path';
import { styleText } from 'node:util';
import Table from 'cli-table3';
import type { Command } from 'commander';
import { loadTokenizer } from '../../agent/tokenizer.js';
import { diagnose } from '../../engines/sglang/doctor.js';
import type { Check } from '../../engines/sglang/doctor-check.js';
import { readEpisodes } from '../../evaluation/episodes-file.js';
import { engineKeys } from '../engine.js';
import { type CommandContext, EXIT } from '../exit.js';

interface DoctorFlags {
  readonly engineUrl: string;
  readonly model: string;
  readonly run?: string;
  readonly flush?: boolean;
  readonly otherVisionWeights?: string;
  readonly json?: boolean;
}

export function addDoctorCommand(program: Command, context: CommandContext): void {
  program
    .command('doctor')
    .description('check an SGLang server: versions, cache reuse, alignment, pictures, noise, abort')
    .requiredOption('--engine-url <url>', 'the server')
    .requiredOption('--model <folder>', "local folder with the served model's config, preprocessor and tokenizer")
    .option('--run <folder>', 'a finished run: how many of its choices lie within the noise')
    .option('--flush', "also empty the server's cache, for everybody who uses it")
    .option(
      '--other-vision-weights <folder>',
      'a folder on the server with other vision weights: are pictures fresh after an update?',
    )
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      '\nExit code 0 when nothing failed, 2 otherwise.\n\nExample:\n  ssr doctor --engine-url http://127.0.0.1:30000 --model ./Qwen3-VL-4B-Instruct',
    )
    .action(async (flags: DoctorFlags) => {
      const model = resolve(flags.model);
      const checks: Check[] = [];
      const run = diagnose({
        url: flags.engineUrl,
        modelFolder: model,
        tokenizer: await loadTokenizer(model),
        isolationKey: `ssr-doctor-${randomUUID()}`,
        flush: flags.flush ?? false,
        ...engineKeys(process.env),
        ...(flags.run !== undefined && { margins: await marginsOf(resolve(flags.run)) }),
        ...(flags.otherVisionWeights !== undefined && { otherVisionWeights: flags.otherVisionWeights }),
      });
      for await (const check of run) {
        checks.push(check);
        if (process.stderr.isTTY) process.stderr.write(`${check.name}: ${check.status}\n`);
      }
      process.stdout.write(`${flags.json ? JSON.stringify(checks, null, 2) : checkTable(checks)}\n`);
      context.setExitCode(checks.some(({ status }) => status === 'fail') ? EXIT.engine : EXIT.ok);
    });
}

async function marginsOf(run: string): Promise<number[]> {
  const margins: number[] = [];
  for await (const { turns } of readEpisodes(join(run, 'episodes.jsonl'))) {
    for (const { reasoning } of turns) if (reasoning.selection?.margin != null) margins.push(reasoning.selection.margin);
  }
  return margins;
}

function checkTable(checks: readonly Check[]): string {
  const colour = { pass: 'green', warn: 'yellow', fail: 'red' } as const;
  const table = new Table({
    head: ['check', 'status', 'detail'],
    colWidths: [24, 8, 100],
    wordWrap: true,
    style: { head: [], border: [] },
  });
  for (const { name, status, detail, remedy } of checks) {
    const shown = process.stdout.isTTY ? styleText(colour[status], status) : status;
    table.push([name, shown, remedy === null ? detail : `${detail}\n→ ${remedy}`]);
  }
  return table.toString();
}
