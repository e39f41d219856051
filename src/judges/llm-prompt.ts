// The judge's prompt: text files with marks for question, gold and answer, filled in one pass so that no value is read as a mark.
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { UsageError } from '../errors.js';

export interface JudgePrompt {
  /** Identifies both texts; part of every cache key and of a run's record. */
  readonly sha256: string;
  readonly repair: string;
  fill(values: { readonly question: string; readonly gold: string; readonly answer: string }): string;
}

const marks = ['question', 'gold', 'answer'] as const;

/** Throws UsageError when a file cannot be read or a mark is missing. */
export async function loadJudgePrompt(promptFile: string, repairFile: string): Promise<JudgePrompt> {
  const [template, repair] = await Promise.all([readText(promptFile), readText(repairFile)]);
  const missing = marks.filter((mark) => !template.includes(`{{${mark}}}`));
  if (missing.length > 0) {
    throw new UsageError("the judge's prompt has no place for everything", {
      where: promptFile,
      expected: missing.map((mark) => `{{${mark}}}`).join(', '),
    });
  }
  return {
    sha256: createHash('sha256')
      .update(JSON.stringify([template, repair]))
      .digest('hex'),
    repair: repair.trim(),
    fill: (values) =>
      template.replace(/\{\{(question|gold|answer)\}\}/g, (_, mark: (typeof marks)[number]) => values[mark]).trim(),
  };
}

async function readText(path: string): Promise<string> {
  return readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new UsageError('cannot read the prompt', { where: path, found: error.code ?? error.message, cause: error });
  });
}
