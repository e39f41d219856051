// Where the things that ship with the package lie.
import { join } from 'node:path';
import { packageRoot } from '../paths.js';

/** The micro checkpoint. */
export function defaultModel(): string {
  return join(packageRoot(), 'benchmarks/micro/model');
}

export function defaultLibrary(): string {
  return join(packageRoot(), 'configs/libraries/default.json');
}

export function defaultPrompt(): string {
  return join(packageRoot(), 'configs/prompts/ssr.txt');
}
