// `ssr tool`: tries one tool by hand, and prints what the model would be shown. `ssr tools`: moves recordings between machines.
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { createSsrDialect } from '../../agent/dialects/ssr.js';
import { loadTokenizer } from '../../agent/tokenizer.js';
import { DataError, UsageError } from '../../errors.js';
import { loadImage } from '../../media/image.js';
import { recordOf, type ToolRequest, tryTool } from '../../tools/by-hand.js';
import { exportStore, importStore, storeStatistics } from '../../tools/recording/snapshot.js';
import type { Image, Tokenizer } from '../../types.js';
import { defaultModel } from '../defaults.js';
import { fieldOption } from '../field-option.js';
import { DEFAULTS } from '../options.js';
import { type Flags, parseFlags } from '../settings.js';
import { type OwnTools, openTools, TOOL_FIELDS, type ToolSettings } from '../tools.js';

type ToolFlags = Flags & { readonly json?: boolean };

const NO_OWN_TOOLS: OwnTools = { version: '' };

export function addToolCommands(program: Command): void {
  const tool = program.command('tool').description('try a tool by hand: the observation as the model would see it');
  const add = (usage: string, description: string, example: string): Command => {
    const command = tool.command(usage).description(description);
    for (const name of [...TOOL_FIELDS, 'model'] as const) {
      command.addOption(fieldOption(name));
    }
    return command.option('--json', 'print the record').addHelpText('after', `\nExample:\n  ${example}`);
  };
  add('text <query>', 'search text', 'ssr tool text "city of Kalo Venn" --text-search local --text-corpus passages.jsonl').action(
    async (query: string, flags: ToolFlags) => run({ kind: 'text', query }, flags),
  );
  add(
    'image <file>',
    'search for a picture',
    'ssr tool image photo.jpg --image-search local --image-search-path pictures/',
  ).action(async (file: string, flags: ToolFlags) => run({ kind: 'image', image: await readPicture(file) }, flags));
  add('crop <file>', 'zoom into a picture', 'ssr tool crop photo.jpg --box 0,0,500,500 --json')
    .requiredOption('--box <x1,y1,x2,y2>', '0 to 1000 of width and height')
    .action(async (file: string, { box, ...flags }: ToolFlags & { readonly box: string }) =>
      run({ kind: 'crop', image: await readPicture(file), box: readBox(box) }, flags),
    );
  addStoreCommands(program);
}

function addStoreCommands(program: Command): void {
  const tools = program
    .command('tools')
    .description('recordings of tool replies: move them between machines, see what is in them');
  const print = (value: unknown): void => void process.stdout.write(`${JSON.stringify(value, null, 2)}\n`);
  tools
    .command('export <store> <archive>')
    .description('pack a store into a .tar.gz')
    .action(async (store: string, archive: string) => print(await exportStore(resolve(store), resolve(archive))));
  tools
    .command('import <archive> <store>')
    .description('add the recordings of an archive to a store')
    .action(async (archive: string, store: string) => print(await importStore(resolve(archive), resolve(store))));
  tools
    .command('stats <store>')
    .description('recordings by provider, outcome and age')
    .action(async (store: string) => print(await storeStatistics(resolve(store))));
}

async function run(request: ToolRequest, { json, ...flags }: ToolFlags): Promise<void> {
  const settings = { ...DEFAULTS, ...parseFlags(flags, process.cwd()) };
  const tokenizer = await loadTokenizer(settings.model ?? defaultModel());
  const tools = await openTools(settings as ToolSettings, NO_OWN_TOOLS, tokenizer, process.env);
  try {
    const result = await tryTool(tools.toolbox, request);
    process.stdout.write(`${json ? JSON.stringify(recordOf(result), null, 2) : shown(result, tokenizer)}\n`);
  } finally {
    await tools.close();
  }
}

function shown(result: Awaited<ReturnType<typeof tryTool>>, tokenizer: Tokenizer): string {
  return createSsrDialect('', tokenizer.addedTokens).observation(result, 1, true).text.trim();
}

async function readPicture(file: string): Promise<Image> {
  const path = resolve(file);
  const bytes = await readFile(path).catch((error: NodeJS.ErrnoException) => {
    throw new DataError('cannot read the picture', { where: path, found: error.code ?? error.message, cause: error });
  });
  return loadImage(bytes, path);
}

function readBox(text: string): readonly [number, number, number, number] {
  const numbers = text.split(',').map((part) => (part.trim() === '' ? Number.NaN : Number(part)));
  if (numbers.length !== 4 || !numbers.every(Number.isFinite)) {
    throw new UsageError('no box', { where: '--box', expected: 'x1,y1,x2,y2 from 0 to 1000', found: text });
  }
  return numbers as [number, number, number, number];
}
