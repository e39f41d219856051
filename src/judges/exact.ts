// The judge that needs no model: an answer is right when, normalised, it equals one of the gold answers, is the same number, lies in
// a range that the data set gives, or names the right option of a multiple-choice question.
import { JudgeError } from '../errors.js';
import type { Judge, Question } from '../types.js';
import { choosesOption } from './choice.js';
import { parseNumber, sameNumber } from './number.js';
import { sameText } from './text.js';

/** Throws JudgeError for a question without gold answers. */
export function exactJudge(): Judge {
  const name = 'exact';
  return {
    name,
    async judge(question, answer) {
      if (question.answers.length === 0) {
        throw new JudgeError('no gold answer to compare with', {
          where: `question ${question.id}`,
          remedy: 'Use a judge that needs none, or leave the question out.',
        });
      }
      return { judge: name, correct: isExact(question, answer) };
    },
  };
}

/** Whether no model is needed to call the answer right. */
export function isExact({ text, answers, ranges = [] }: Question, answer: string): boolean {
  if (answers.some((gold) => sameText(answer, gold) || sameNumber(answer, gold) || choosesOption(text, answer, gold)))
    return true;
  const number = parseNumber(answer);
  return number !== null && ranges.some(([low, high]) => low <= number && number <= high);
}
