// Where the package lies: the nearest folder above this file with a package.json, from src/ as from dist/src/.
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DataError } from './errors.js';

/** Absolute path of the package's root, where configs/ and benchmarks/ lie. */
export function packageRoot(): string {
  const start = dirname(fileURLToPath(import.meta.url));
  for (let folder = start; ; folder = dirname(folder)) {
    if (existsSync(join(folder, 'package.json'))) return folder;
    if (folder === dirname(folder)) {
      throw new DataError('the package is not complete', { where: start, expected: 'a package.json here or above' });
    }
  }
}
