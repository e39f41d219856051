// Several runs after one another, each in a folder of its own: all seven benchmarks, the same questions several times, or both.
import { join } from 'node:path';
import { benchmarks } from '../../benchmarks/registry.js';
import { UsageError } from '../errors.js';
import { deriveSeed } from '../random.js';
import { renderTable } from '../reports/table-formats.js';
import { type EvaluateFlags, evaluate } from './evaluate.js';
import { EXIT } from './exit.js';
import type { Settings } from './options.js';
import { readTable } from './report-runs.js';
import { loadBenchmark } from './wire.js';

/** What stands behind `--benchmark all`, in the order of the published table. */
export const allBenchmarks: readonly string[] = benchmarks.map(({ name }) => name);

export interface ManyOptions {
  /** One per benchmark. */
  readonly settings: readonly Settings[];
  readonly repeat: number;
  readonly output: string;
  readonly flags: EvaluateFlags;
}

interface PlannedRun {
  readonly settings: Settings;
  readonly folder: string;
  /** Repeats ask the same sample. */
  readonly planSeed: number;
}

/** Data that are missing are found before anything runs. Prints one table for all runs and returns the exit code. */
export async function evaluateMany({ settings, repeat, output, flags }: ManyOptions): Promise<number> {
  if (settings.length > 1 && settings.some(({ ids }) => ids !== undefined)) {
    throw new UsageError('ids belong to one benchmark', { where: '--ids', remedy: 'Use --limit or --sample with all.' });
  }
  for (const one of settings) await loadBenchmark(one);
  const runs = settings.flatMap((one) => repeats(one, repeat, settings.length > 1 ? join(output, one.benchmark) : output));
  let exitCode: number = EXIT.ok;
  for (const [i, { settings: one, folder, planSeed }] of runs.entries()) {
    process.stderr.write(`Run ${i + 1} of ${runs.length}: ${one.benchmark}, seed ${one.seed}\n`);
    const code = await evaluate(one, folder, { ...flags, planSeed, quiet: true });
    if (code === EXIT.interrupted) return code;
    if (code !== EXIT.ok) exitCode = code;
  }
  const table = await readTable(runs.map(({ folder }) => folder));
  process.stdout.write(renderTable(table, null, flags.json ? 'json' : 'terminal'));
  return exitCode;
}

/** The first repeat is the run with the seed as given; the others' seeds are derived from it. */
function repeats(settings: Settings, repeat: number, folder: string): PlannedRun[] {
  const planSeed = settings.seed;
  if (repeat === 1) return [{ settings, folder, planSeed }];
  return Array.from({ length: repeat }, (_, i) => ({
    settings: i === 0 ? settings : { ...settings, seed: deriveSeed(planSeed, `repeat-${i + 1}`) },
    folder: join(folder, `repeat-${i + 1}`),
    planSeed,
  }));
}
