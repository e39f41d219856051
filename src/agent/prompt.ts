// Prompts are text files with {{placeholders}}; what fills them is rendered here.
import { UsageError } from '../errors.js';
import type { LibraryEntry } from '../types.js';

/** Fills {{name}} placeholders; throws UsageError for a placeholder that nothing fills. */
export function renderPrompt(template: string, values: Readonly<Record<string, string>>, where: string): string {
  return template.replace(/\{\{(\w+)\}\}/g, (_, name: string) => {
    const value = values[name];
    if (value === undefined) {
      throw new UsageError(`unknown placeholder {{${name}}}`, { where, expected: `one of ${Object.keys(values).join(', ')}` });
    }
    return value;
  });
}

/** One line per candidate, sorted by id as the paper's prompt is (so prompt index and scoring index differ). */
export function renderCandidates(entries: readonly LibraryEntry[]): string {
  return [...entries]
    .sort((a, b) => (a.id < b.id ? -1 : 1))
    .map(({ text, expectedActions }, i) => `[${i}] "${text}"  (expected action: ${expectedActions.join(', ')})`)
    .join('\n');
}
