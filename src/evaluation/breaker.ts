// When a run must stop by itself: the engine is gone, or too much fails for the result to mean anything.
import { EngineUnavailableError, SsrError } from '../errors.js';
import { type Episode, isErrorStatus } from './records.js';

export interface BreakerOptions {
  /** Questions in a row that may fail because the engine cannot be reached. */
  readonly unavailableInARow: number;
  /** Share of failed questions, 0..1, above which the run stops; null for no limit. */
  readonly maxErrorRate: number | null;
}

/** A share of fewer questions says nothing. */
const LEAST_QUESTIONS = 20;

/** Returns the reason to stop once there is one; what has been recorded stays and can be resumed. */
export function createBreaker({ unavailableInARow, maxErrorRate }: BreakerOptions): (episode: Episode) => SsrError | null {
  let [questions, failed, unavailable] = [0, 0, 0];
  return ({ status, error }) => {
    const remedy = 'Everything so far is kept; the same command resumes the run.';
    if (status === 'cancelled') return null;
    questions++;
    if (isErrorStatus(status)) failed++;
    if (error?.kind === 'ToolStopError') return new SsrError(error.message, { remedy });
    unavailable = error?.kind === 'EngineUnavailableError' ? unavailable + 1 : 0;
    if (unavailable >= unavailableInARow) {
      return new EngineUnavailableError(`the engine failed ${unavailable} questions in a row`, {
        found: error?.message ?? 'no reply',
        remedy,
      });
    }
    if (maxErrorRate !== null && questions >= LEAST_QUESTIONS && failed / questions > maxErrorRate) {
      return new SsrError('too many questions failed', {
        expected: `at most ${(100 * maxErrorRate).toFixed(1)}% (--max-error-rate)`,
        found: `${failed} of ${questions}`,
        remedy,
      });
    }
    return null;
  };
}
