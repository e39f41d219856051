// Where the things that ship with the package lie.
import { join } from 'node:path';
import { dialectFormat } from '../agent/dialects/registry.js';
import { promptFiles, type ReasoningName } from '../agent/reasoning/create.js';
import { packageRoot } from '../paths.js';

/** The micro checkpoint. */
export function defaultModel(): string {
  return join(packageRoot(), 'benchmarks/micro/model');
}

export function defaultLibrary(): string {
  return join(packageRoot(), 'configs/libraries/default.json');
}

/** The prompt files of a way of reasoning in an agent format; a format of its own comes with its own prompt. */
export function defaultPrompts(dialect: string, reasoning: ReasoningName): string[] {
  const { prompt } = dialectFormat(dialect);
  const files = dialect === 'ssr' ? promptFiles(reasoning) : [prompt];
  return files.map((name) => join(packageRoot(), 'configs/prompts', name));
}
