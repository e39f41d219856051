// Recorded reverse-image results in the format of the method's authors: {"image_sha256", "retrieved_at"?, "results": [{"title", "url",
// "source"?, "thumbnail"? (its address then), "image_path"? (relative to the manifest)}]}, matched by the picture's hash alone.
import { createHash } from 'node:crypto';
import { readdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { DataError, UsageError } from '../../errors.js';
import type { Image } from '../../types.js';
import type { Provider } from '../provider.js';
import { createShippedSearch, readData, type ShippedResult, within } from './shipped.js';

const manifestSchema = z.object({
  image_sha256: z.string().regex(/^[0-9a-f]{64}$/i),
  results: z.array(
    z.object({
      title: z.string().optional(),
      url: z.string().optional(),
      source: z.string().optional(),
      image_path: z.string().nullish(),
    }),
  ),
});

/** `path` is one manifest, a list of them in one file, or a folder of manifests. Throws UsageError or DataError. */
export async function createManifestSearch(path: string, results: number): Promise<Provider<Image>> {
  const hash = createHash('sha256');
  const byPicture = new Map<string, readonly ShippedResult[]>();
  for (const file of await manifestFiles(path)) {
    const source = await readData(file);
    hash.update(source);
    for (const { image_sha256, results: rows } of parse(source.toString(), file)) {
      byPicture.set(
        image_sha256.toLowerCase(),
        rows.map(({ image_path, ...row }) => ({ ...row, path: image_path ? within(dirname(file), image_path) : null })),
      );
    }
  }
  const shipment = {
    sha256: hash.digest('hex'),
    find: async ({ sha256 }: Image) => byPicture.get(sha256) ?? null,
  };
  return createShippedSearch('manifest', shipment, results, path);
}

async function manifestFiles(path: string): Promise<string[]> {
  const found = await stat(path).catch((cause: NodeJS.ErrnoException) => {
    throw new UsageError('cannot read the manifest', { where: path, found: cause.code ?? cause.message, cause });
  });
  if (!found.isDirectory()) return [path];
  const names = (await readdir(path)).filter((name) => name.endsWith('.json')).sort();
  if (names.length === 0) throw new UsageError('no manifests', { where: path, expected: 'files *.json' });
  return names.map((name) => join(path, name));
}

function parse(source: string, where: string): z.infer<typeof manifestSchema>[] {
  let json: unknown;
  try {
    json = JSON.parse(source);
  } catch (cause) {
    throw new DataError('not JSON', { where, cause });
  }
  const parsed = z.array(manifestSchema).safeParse(Array.isArray(json) ? json : [json]);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new DataError(`${issue?.path.join('.')}: ${issue?.message}`, { where, expected: '{"image_sha256", "results"}' });
}
