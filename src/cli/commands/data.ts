// `ssr data`: data sets prepared, listed, verified, exported, and joined with caches of image searches.
import { dirname, relative, resolve } from 'node:path';
import { type Command, Option } from 'commander';
import { dataSource, dataSources } from '../../../benchmarks/registry.js';
import { addImageSearches, type ConvertedSearches } from '../../data/image-search/convert.js';
import { type CachedSearch, deepEyesSearches, fvqaPickleSearches, marsSearches } from '../../data/image-search/sources.js';
import { exportMars } from '../../data/mars-export.js';
import { openBenchmark } from '../../data/open.js';
import { folderFiles } from '../../data/source-files.js';
import { type DataState, dataState, verifyPrepared } from '../../data/verify.js';
import { UsageError } from '../../errors.js';
import { terminalTable } from '../../reports/compare-formats.js';
import { sizeText } from '../data-progress.js';
import { type CommandContext, EXIT } from '../exit.js';
import { makeFolder, withSystemErrors } from '../folders.js';
import { stoppable } from '../stoppable.js';
import { type PrepareFlags, prepareCommand } from './data-prepare.js';

interface DataFlags {
  readonly data: string;
  readonly json?: boolean;
}

export function addDataCommand(program: Command, context: CommandContext): void {
  const data = program.command('data').description('published data sets: prepare, list, verify, export');
  const withFolder = (command: Command): Command =>
    command.option('--data <folder>', 'where data sets are prepared, a folder each', 'data');

  withFolder(data.command('prepare <names...>'))
    .description('download a data set (or take --from) and write the folder that evaluation reads; all for every set')
    .option('--from <folder>', 'files that you already have; with several names, a folder of each name inside')
    .option('--allow-count-mismatch', 'accept another number of rows or questions than is published')
    .addHelpText('after', prepareHelp)
    .action((names: string[], flags: PrepareFlags) => prepareCommand(names, flags, context));

  withFolder(data.command('list'))
    .description('every known data set: state, questions, size, licence, source, revision')
    .option('--json', 'print JSON')
    .action(list);

  withFolder(data.command('verify [names...]'))
    .description('read every byte of prepared sets again: hashes, counts, pictures; without names, all that are prepared')
    .action((names: string[], flags: DataFlags) => verify(names, flags, context));

  withFolder(data.command('export <benchmark>'))
    .description('write a benchmark in the form of other harnesses')
    .addOption(new Option('--format <name>', 'form').choices(['mars']).makeOptionMandatory())
    .requiredOption('--output <folder>', 'folder that gets test_all.json and a folder of the set')
    .addHelpText('after', '\nExample:\n  ssr data export hr-mmsearch --format mars --output mars-data')
    .action((benchmark: string, flags: DataFlags & { output: string }) => exportCommand(benchmark, flags, context));

  withFolder(data.command('image-search <name>'))
    .description('add what others found by reverse image search to a prepared set')
    .requiredOption('--from <file>', "FVQA's .pkl, DeepEyesV2's .json, or SenseNova-MARS' manifest.json#set")
    .option('--images <folder>', "thumbnails of DeepEyesV2's cache, as files or zip (default: the folder of the file)")
    .addHelpText('after', '\nExample:\n  ssr data image-search fvqa-test --from fvqa_test_image_search_results_cache.pkl')
    .action((name: string, flags: DataFlags & { from: string; images?: string }) => imageSearch(name, flags, context));
}

const prepareHelp = `
Environment: HF_TOKEN, HF_ENDPOINT (a mirror), HF_HOME or HF_HUB_CACHE (the cache, shared with the Python client).
Interrupted downloads go on where they stopped; nothing half-written is left.

Examples:
  ssr data prepare mmsearch
  ssr data prepare all --data /big/disk/data
  ssr data prepare infoseek --from Downloads`;

async function list({ data, json }: DataFlags): Promise<void> {
  const states = await Promise.all(dataSources.map((source) => dataState(source, resolve(data))));
  process.stdout.write(`${json ? JSON.stringify(states, null, 2) : listTable(states)}\n`);
}

function listTable(states: readonly DataState[]): string {
  return terminalTable({
    title: 'Data sets',
    columns: ['name', 'state', 'questions', 'pictures', 'flags', 'licence', 'source', 'revision'],
    rows: states.map(({ name, state, questions, expectedQuestions, bytes, flags, licence, source, revision }) => [
      name,
      state,
      `${questions ?? '–'} of ${expectedQuestions ?? 'unknown'}`,
      bytes === null ? '–' : sizeText(bytes),
      Object.entries(flags)
        .map(([flag, count]) => `${flag} ${count}`)
        .join(', '),
      brief(licence),
      source,
      /^[0-9a-f]{40}$/.test(revision) ? revision.slice(0, 12) : revision,
    ]),
  });
}

/** In full with --json. */
function brief(text: string): string {
  return text.length > 34 ? `${text.slice(0, 33)}…` : text;
}

async function verify(names: readonly string[], { data }: DataFlags, context: CommandContext): Promise<void> {
  const folder = resolve(data);
  const states = await Promise.all(dataSources.map((source) => dataState(source, folder)));
  const present = states.filter(({ state }) => state !== 'absent').map(({ name }) => name);
  const wanted = names.length === 0 || names.includes('all') ? present : names.map((name) => dataSource(name).name);
  if (wanted.length === 0)
    throw new UsageError('nothing is prepared', { where: folder, remedy: 'Try: ssr data prepare mmsearch' });
  for (const name of wanted) {
    const { questions, images, faults } = await withSystemErrors(() => verifyPrepared(resolve(folder, name)));
    process.stdout.write(`${name}: ${questions} questions, ${images} pictures, ${faults.length === 0 ? 'whole' : 'DAMAGED'}\n`);
    for (const fault of faults) process.stdout.write(`  ${fault}\n`);
    if (faults.length > 0) context.setExitCode(EXIT.data);
  }
}

async function exportCommand(
  spec: string,
  { data, output }: DataFlags & { readonly output: string },
  context: CommandContext,
): Promise<void> {
  const known = dataSources.map(({ name }) => name);
  const benchmark = await openBenchmark(spec, resolve(data), known);
  await makeFolder(resolve(output));
  const summary = await stoppable((signal) => withSystemErrors(() => exportMars(benchmark, resolve(output), signal)));
  if (summary === null) return context.setExitCode(EXIT.interrupted);
  process.stdout.write(`${summary.written} questions written; --benchmark ${relative('', summary.manifest)}#${benchmark.name}\n`);
  for (const { id, reason } of summary.leftOut) process.stdout.write(`left out ${id}: ${reason}\n`);
}

async function imageSearch(
  name: string,
  { data, from, images }: DataFlags & { readonly from: string; readonly images?: string },
  context: CommandContext,
): Promise<void> {
  const folder = resolve(data, dataSource(name).name);
  const searches = await searchesOf(from, images);
  const added = await stoppable((signal) => withSystemErrors(() => addImageSearches(folder, searches, signal)));
  if (added === null) return context.setExitCode(EXIT.interrupted);
  process.stdout.write(`${describeSearches(name, added)}\n`);
}

async function searchesOf(from: string, images: string | undefined): Promise<AsyncIterable<CachedSearch>> {
  const mars = /^(.+\.json)#(.+)$/.exec(from);
  if (mars?.[1] && mars[2]) return marsSearches(resolve(mars[1]), mars[2]);
  if (/\.(?:pkl|pickle)$/.test(from)) return fvqaPickleSearches(resolve(from));
  if (from.endsWith('.json')) return deepEyesSearches(resolve(from), await folderFiles(resolve(images ?? dirname(from))));
  throw new UsageError('not a known cache of image searches', {
    found: from,
    expected: 'FILE.pkl, FILE.json or manifest.json#set',
  });
}

function describeSearches(name: string, { questions, missing, pages, thumbnails, withoutThumbnail }: ConvertedSearches): string {
  const lost = missing.slice(0, 5).join(', ');
  return [
    `${name}: searches for ${questions - missing.length} of ${questions} questions, ${pages} pages, ${thumbnails} thumbnails`,
    ...(withoutThumbnail > 0 ? [`${withoutThumbnail} pages without a thumbnail`] : []),
    ...(missing.length > 0 ? [`not in the cache: ${lost}${missing.length > 5 ? ', …' : ''}`] : []),
  ].join(' · ');
}
