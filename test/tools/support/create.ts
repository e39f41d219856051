import { onTestFinished } from 'vitest';
import { createTools, type Tools } from '../../../src/tools/create.js';
import type { NetworkOptions, ToolOptions } from '../../../src/tools/options.js';
import { impatientClock } from './clock.js';

/** Tools whose waits take no time; they are closed when the test ends. */
export async function tools(
  { recording = { mode: 'live' }, ...options }: Partial<ToolOptions>,
  network: NetworkOptions = {},
): Promise<Tools> {
  const made = await createTools({ clock: impatientClock(), recording, network, ...options });
  onTestFinished(() => made.close());
  return made;
}
