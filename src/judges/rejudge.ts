// Answers of a finished run judged again, with no engine: what `ssr judge` does between reading the run and writing its verdicts.
import pLimit from 'p-limit';
import { SsrError } from '../errors.js';
import type { Judge, Question } from '../types.js';

export interface GivenAnswer {
  readonly id: string;
  readonly answer: string;
  /** Read when its turn comes, so that the pictures of a whole run are never in memory together. */
  question(): Promise<Question>;
}

export interface Judged {
  readonly id: string;
  /** Null when there is no verdict: `error` says why, or the question has no gold. */
  readonly correct: boolean | null;
  readonly judge: string;
  readonly error: { readonly kind: string; readonly message: string } | null;
}

/** In the order given. An answer without a verdict is an error of its own and ends nothing; an abort ends everything. */
export async function judgeAnswers(
  answers: readonly GivenAnswer[],
  judge: Judge,
  options: { readonly concurrency: number; readonly signal?: AbortSignal; readonly onJudged?: (judged: Judged) => void },
): Promise<Judged[]> {
  const limit = pLimit(options.concurrency);
  return Promise.all(
    answers.map((given) =>
      limit(async () => {
        options.signal?.throwIfAborted();
        const judged = await judgeOne(given, judge, options.signal);
        options.onJudged?.(judged);
        return judged;
      }),
    ),
  );
}

async function judgeOne({ id, answer, question }: GivenAnswer, judge: Judge, signal?: AbortSignal): Promise<Judged> {
  try {
    const loaded = await question();
    if (loaded.answers.length === 0) return { id, correct: null, judge: judge.name, error: null };
    return { id, ...(await judge.judge(loaded, answer, signal)), error: null };
  } catch (error) {
    signal?.throwIfAborted();
    const kind = error instanceof SsrError ? error.name : 'UnexpectedError';
    return {
      id,
      correct: null,
      judge: judge.name,
      error: { kind, message: error instanceof Error ? error.message : String(error) },
    };
  }
}
