// Finished runs read from their folders for the success table.
import { readdir, readFile, stat } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { z } from 'zod';
import { benchmarks, dataSources } from '../../benchmarks/registry.js';
import { DataError } from '../errors.js';
import { readEpisodeLines } from '../evaluation/episodes-file.js';
import { packageRoot } from '../paths.js';
import { againstPaper, type PaperComparison, parsePublished } from '../reports/paper.js';
import { createRunResult, type RunResult, type SuccessTable, successTable } from '../reports/table.js';
import { type RunManifest, readRunManifest } from './run-manifest.js';

/** The table of runs; a folder of runs (several benchmarks, repeats) stands for all runs below it. */
export async function readTable(folders: readonly string[]): Promise<SuccessTable> {
  const runs: RunResult[] = [];
  for (const folder of (await Promise.all(folders.map((folder) => runsBelow(folder)))).flat()) runs.push(await readRun(folder));
  return successTable(
    runs,
    benchmarks.map(({ name }) => name),
  );
}

/** Throws DataError when none of the table's benchmarks is published. */
export async function comparePaper(table: SuccessTable): Promise<PaperComparison> {
  const path = join(packageRoot(), 'results/paper/success.csv');
  const text = await readFile(path, 'utf8').catch((cause: unknown) => {
    throw new DataError('the published table cannot be read', { where: path, cause });
  });
  const sizes = new Map(
    benchmarks.flatMap(({ name, expected }) => (expected.questions === null ? [] : [[name, expected.questions]])),
  );
  return againstPaper(table, parsePublished(text, path), sizes);
}

/** Benchmark folders hold folders of repeats: two levels at most. */
async function runsBelow(folder: string, levels = 2): Promise<string[]> {
  if (await stat(join(folder, 'manifest.json')).catch(() => null)) return [folder];
  const inside = await readdir(folder, { withFileTypes: true }).catch((error: NodeJS.ErrnoException) => {
    throw new DataError('cannot be read', { where: folder, found: error.code ?? error.message, cause: error });
  });
  const folders = inside.filter((entry) => entry.isDirectory()).map(({ name }) => join(folder, name));
  const found = levels === 0 ? [] : (await Promise.all(folders.sort(byNumber).map((name) => runsBelow(name, levels - 1)))).flat();
  if (found.length === 0 && levels === 2) throw new DataError('no run here', { where: folder, expected: 'manifest.json' });
  return found;
}

/** repeat-10 comes behind repeat-9. */
function byNumber(a: string, b: string): number {
  return a.localeCompare(b, 'en', { numeric: true });
}

async function readRun(folder: string): Promise<RunResult> {
  const manifest = await readRunManifest(folder);
  const { name, split } = manifest.identity.benchmark;
  const source = dataSources.find((known) => known.name === name);
  const run = createRunResult({
    folder: shortPath(folder),
    benchmark: source ? name : `${name}-${split}`,
    system: systemOf(manifest),
    publishedQuestions: source?.expected.questions ?? null,
    plan: manifest.plan,
    summary: await readSummary(join(folder, 'summary.json')),
  });
  for await (const { episode } of readEpisodeLines(join(folder, 'episodes.jsonl'))) {
    if (episode === null) run.addUnreadable();
    else run.add(episode);
  }
  return run.result();
}

/** From the current folder where it lies inside. */
function shortPath(folder: string): string {
  const path = relative(process.cwd(), folder);
  return path === '' || path.startsWith('..') ? folder : path;
}

/** All that makes a run the run it is, but for the seed. */
function systemOf({ identity }: RunManifest): string {
  const { seed: _, ...settings } = identity.settings;
  return JSON.stringify({ ...identity, settings });
}

const summarySchema = z.object({ success: z.object({ overall: z.object({ successes: z.number(), n: z.number() }) }) });

async function readSummary(path: string): Promise<{ successes: number; n: number } | null> {
  const text = await readFile(path, 'utf8').catch(() => null);
  if (text === null) return null;
  try {
    return summarySchema.parse(JSON.parse(text)).success.overall;
  } catch (cause) {
    throw new DataError('not a summary', { where: path, remedy: 'Resume the run, or judge it again, to write it anew.', cause });
  }
}
