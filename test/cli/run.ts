// Runs a command line in this process and catches what it prints.
import { vi } from 'vitest';
import { main } from '../../src/cli/main.js';

export interface Outcome {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

export async function ssr(...args: string[]): Promise<Outcome> {
  const printed = { stdout: '', stderr: '' };
  const capture = (name: 'stdout' | 'stderr') =>
    vi.spyOn(process[name], 'write').mockImplementation((chunk) => {
      printed[name] += String(chunk);
      return true;
    });
  const spies = [capture('stdout'), capture('stderr')];
  try {
    const exitCode = await main(['node', 'ssr', ...args]);
    return { exitCode, ...printed };
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
}
