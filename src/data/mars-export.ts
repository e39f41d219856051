// Any benchmark written as a set of SenseNova-MARS: <root>/data.jsonl, <root>/images/, and an entry in the manifest beside it.
import { mkdir, open, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { z } from 'zod';
import { DataError } from '../errors.js';
import type { Benchmark, Image, Question } from '../types.js';
import { writeWhole } from './hub/cache.js';
import { parseJson } from './json.js';
import { marsManifestSchema } from './mars.js';

export interface ExportSummary {
  readonly manifest: string;
  readonly written: number;
  /** Questions that could not be loaded, which MARS cannot express. */
  readonly leftOut: readonly { readonly id: string; readonly reason: string }[];
}

/**
 * Writes folder/<name>/ and adds the set to folder/test_all.json. Native ids and types are kept in `extra_info`. An aborted export
 * adds no set, and an earlier one stays.
 */
export async function exportMars(benchmark: Benchmark, folder: string, signal?: AbortSignal): Promise<ExportSummary> {
  const root = join(folder, benchmark.name);
  await mkdir(join(root, 'images'), { recursive: true });
  const leftOut: { id: string; reason: string }[] = [];
  const data = join(root, 'data.jsonl');
  const file = await open(`${data}.part`, 'w');
  let written = 0;
  try {
    for (const { id } of benchmark.entries) {
      signal?.throwIfAborted();
      const question = await load(benchmark, id, leftOut);
      if (question === null) continue;
      const images = await Promise.all(question.images.map((image) => writeImage(image, root)));
      await file.write(`${JSON.stringify(toRow(question, images, written))}\n`);
      written += 1;
    }
    await file.close();
    await rename(`${data}.part`, data);
  } catch (error) {
    await file.close();
    await rm(`${data}.part`, { force: true });
    throw error;
  }
  const manifest = join(folder, 'test_all.json');
  await addToManifest(manifest, benchmark.name, written);
  return { manifest, written, leftOut };
}

async function load(benchmark: Benchmark, id: string, leftOut: { id: string; reason: string }[]): Promise<Question | null> {
  try {
    return await benchmark.load(id);
  } catch (error) {
    if (!(error instanceof DataError)) throw error;
    leftOut.push({ id, reason: error.message });
    return null;
  }
}

async function writeImage(image: Image, root: string): Promise<string> {
  const name = `images/${image.sha256}.${image.mediaType.split('/')[1]?.replace('jpeg', 'jpg') ?? 'bin'}`;
  await writeFile(join(root, name), image.bytes);
  return name;
}

function toRow({ id, type, text, answers }: Question, images: readonly string[], index: number): object {
  return {
    prompt: [{ role: 'user', content: '<image>'.repeat(images.length) + text }],
    reward_model: { ground_truth: answers },
    image: images,
    index,
    extra_info: { id, type },
  };
}

async function addToManifest(path: string, name: string, length: number): Promise<void> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '{}';
    throw error;
  });
  const manifest: z.infer<typeof marsManifestSchema> = parseJson(text, marsManifestSchema, path);
  const set = {
    root: `./${name}`,
    annotation: `./${name}/data.jsonl`,
    length,
    repeat_time: 1,
    reward_fn: [],
    unused_reward_fn: ['llm_score'],
    input_template: { name: 'general', arguments: { system_prompt: '', format_instruction: '', add_image_path: false } },
    comment: '',
  };
  await writeWhole(path, `${JSON.stringify({ ...manifest, [name]: set }, null, 2)}\n`);
}
