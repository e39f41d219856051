// SenseNova-MARS' data, read where they lie: a manifest of named sets (test_all.json), each a data.jsonl with pictures under its root.
import { access, readFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { z } from 'zod';
import { DataError, UsageError } from '../errors.js';
import type { Benchmark } from '../types.js';
import { withoutImageMarks } from './cells.js';
import { parseJson } from './json.js';
import { openLinesBenchmark } from './lines-benchmark.js';

export const marsManifestSchema = z.record(
  z.string(),
  z.looseObject({ root: z.string(), annotation: z.string(), length: z.number().int().optional() }),
);

export const marsRowSchema = z.looseObject({
  prompt: z.array(z.object({ role: z.string(), content: z.string() })).min(1),
  reward_model: z.looseObject({ ground_truth: z.union([z.array(z.string()), z.string()]) }),
  image: z.union([z.array(z.string()), z.string()]).nullish(),
  image_search_title_list: z.array(z.string()).nullish(),
  image_search_thumbnail_list: z.array(z.string().nullable()).nullish(),
  extra_info: z.record(z.string(), z.unknown()).nullish(),
});

export interface MarsSet {
  readonly name: string;
  readonly root: string;
  readonly annotation: string;
  readonly length: number | null;
}

/**
 * One set of a manifest. Ids are the native ones where our export kept them, else MARS' own `<set>-<line>`, counted from 0.
 * Throws UsageError for an unknown set, DataError for unreadable data or another number of rows than the manifest says.
 */
export async function openMars(manifestFile: string, name: string): Promise<Benchmark> {
  const set = await findMarsSet(manifestFile, name);
  const benchmark = await openLinesBenchmark({
    name,
    split: 'mars',
    file: set.annotation,
    parse(line, where, position) {
      const row = parseJson(line, marsRowSchema, where);
      const type = row.extra_info?.type;
      return {
        id: marsId(row, name, position),
        type: typeof type === 'string' ? type : name,
        text: withoutImageMarks(row.prompt.find(({ role }) => role === 'user')?.content ?? ''),
        images: [row.image ?? []].flat().map((path) => ({ path: resolve(set.root, path) })),
        answers: [row.reward_model.ground_truth].flat().filter((answer) => answer.trim() !== ''),
      };
    },
  });
  if (set.length === null || set.length === benchmark.entries.length) return benchmark;
  throw new DataError('the set is not as long as its manifest says', {
    where: set.annotation,
    expected: String(set.length),
    found: String(benchmark.entries.length),
  });
}

export function marsId(row: z.infer<typeof marsRowSchema>, name: string, position: number): string {
  const id = row.extra_info?.id;
  return typeof id === 'string' && id !== '' ? id : `${name}-${position}`;
}

export async function findMarsSet(manifestFile: string, name: string): Promise<MarsSet> {
  const text = await readFile(manifestFile, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new DataError('cannot be read', { where: manifestFile, found: error.code ?? error.message, cause: error });
  });
  const manifest = parseJson(text, marsManifestSchema, manifestFile);
  const set = manifest[name];
  if (set === undefined) {
    throw new UsageError('the manifest has no such set', {
      where: manifestFile,
      found: name,
      expected: `one of: ${Object.keys(manifest).join(', ')}`,
    });
  }
  const [root, annotation] = await Promise.all([locate(set.root, manifestFile), locate(set.annotation, manifestFile)]);
  return { name, root, annotation, length: set.length ?? null };
}

/** Paths in a manifest count from the folder that MARS' code is started in, which is the manifest's or one above it. */
async function locate(path: string, manifestFile: string): Promise<string> {
  for (let folder = dirname(resolve(manifestFile)); ; folder = dirname(folder)) {
    const candidate = resolve(folder, path);
    if (
      await access(candidate).then(
        () => true,
        () => false,
      )
    )
      return candidate;
    if (folder === dirname(folder)) break;
  }
  throw new DataError('a path of the manifest leads nowhere', {
    where: manifestFile,
    found: path,
    expected: `a path from ${join(dirname(manifestFile))} or a folder above`,
  });
}
