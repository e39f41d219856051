// The agent formats by name, with what a run needs to know of them before it starts.
import { UsageError } from '../../errors.js';
import type { Dialect } from '../../types.js';
import type { DialectOptions } from './chatml.js';
import { createDeepeyesDialect } from './deepeyes.js';
import { createDeepeyesV2Dialect } from './deepeyes-v2.js';
import { createMarsDialect } from './mars.js';
import { createMiniO3Dialect } from './mini-o3.js';
import { createMmsearchR1Dialect } from './mmsearch-r1.js';
import { createQwenAgentDialect } from './qwen-agent.js';
import { createSsrDialect } from './ssr.js';

export interface DialectFormat {
  readonly name: string;
  readonly create: (options: DialectOptions) => Dialect;
  /** File in configs/prompts that its checkpoints are asked with where a run names none. */
  readonly prompt: string;
  /** Turns that its authors allow; null where they are not known. */
  readonly maxTurns: number | null;
  /** Its checkpoints write their thoughts and may leave one out; `ssr` chooses them. */
  readonly writes: boolean;
}

const formats: readonly DialectFormat[] = [
  {
    name: 'ssr',
    create: ({ systemPrompt, addedTokens }) => createSsrDialect(systemPrompt, addedTokens),
    prompt: 'ssr.txt',
    maxTurns: 8,
    writes: false,
  },
  { name: 'mars', create: createMarsDialect, prompt: 'dialect-mars.txt', maxTurns: 50, writes: true },
  { name: 'mmsearch-r1', create: createMmsearchR1Dialect, prompt: 'dialect-mmsearch-r1.txt', maxTurns: 3, writes: true },
  { name: 'deepeyes', create: createDeepeyesDialect, prompt: 'dialect-deepeyes.txt', maxTurns: null, writes: true },
  { name: 'deepeyes-v2', create: createDeepeyesV2Dialect, prompt: 'dialect-deepeyes-v2.txt', maxTurns: null, writes: true },
  { name: 'mini-o3', create: createMiniO3Dialect, prompt: 'dialect-mini-o3.txt', maxTurns: null, writes: true },
  { name: 'qwen-agent', create: createQwenAgentDialect, prompt: 'dialect-qwen-agent.txt', maxTurns: null, writes: true },
];

export const dialectNames: readonly string[] = formats.map(({ name }) => name);

/** Throws UsageError for an unknown name, listing the known ones. */
export function dialectFormat(name: string): DialectFormat {
  const format = formats.find((known) => known.name === name);
  if (format) return format;
  throw new UsageError('unknown dialect', { where: '--dialect', found: name, expected: `one of ${dialectNames.join(', ')}` });
}
