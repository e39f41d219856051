// From what stands behind --benchmark to a benchmark: a MARS set, a JSONL file, a prepared folder, or a known name.
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { UsageError } from '../errors.js';
import type { Benchmark } from '../types.js';
import { openPrepared } from './loader.js';
import { openMars } from './mars.js';
import { openPlain } from './plain.js';

/**
 * `manifest.json#set` is a set of SenseNova-MARS, `*.jsonl` a file of questions, a folder a prepared one; anything else is a name of
 * `known` that was prepared under `dataFolder`. Throws UsageError for a name that means nothing.
 */
export async function openBenchmark(spec: string, dataFolder: string, known: readonly string[]): Promise<Benchmark> {
  const mars = /^(.+\.json)#(.+)$/.exec(spec);
  if (mars?.[1] && mars[2]) return openMars(mars[1], mars[2]);
  if (spec.endsWith('.jsonl')) return openPlain(spec);
  if (known.includes(spec)) return openPrepared(join(dataFolder, spec));
  if ((await stat(spec).catch(() => null))?.isDirectory()) return openPrepared(spec);
  throw new UsageError('no such benchmark', {
    found: spec,
    expected: `one of micro, ${known.join(', ')}, a folder made by "ssr data prepare", a .jsonl file, or manifest.json#set`,
  });
}
