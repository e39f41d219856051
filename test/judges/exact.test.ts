import { describe, expect, it } from 'vitest';
import { JudgeError } from '../../src/errors.js';
import { exactJudge, normaliseText, sameText } from '../../src/judges/exact.js';
import type { Question } from '../../src/types.js';

describe('the exact judge', () => {
  it.each([
    [' Oslo', 'Oslo'],
    ['OSLO.', 'oslo'],
    ['"Oslo"', 'Oslo'],
    ['**Oslo**', 'Oslo'],
    ['(the "Blue   Lagoon")!', 'blue lagoon'],
    ['An apple', 'the apple'],
    ['Ｏｓｌｏ', 'Oslo'],
    ['ﬁsh', 'fish'],
    ['1\u00a0000 km', '1 000 km'],
    ['cafe\u0301', 'café'],
    ['“Don’t”', 'don’t'],
    ['A', 'a.'],
  ])('takes %j for %j', (answer, gold) => {
    expect(sameText(answer, gold)).toBe(true);
    expect(sameText(gold, answer)).toBe(true);
  });

  it.each([
    ['Oslo city', 'Oslo'],
    ['-5', '5'],
    ['.5', '5'],
    ['50%', '50'],
    ['$3', '3'],
    ['C#', 'C'],
    ['C++', 'C'],
    ['theory', 'ory'],
    ['another', 'other'],
    ['', ''],
    ['...', '...'],
    ['  ', 'Oslo'],
    ['', 'Oslo'],
  ])('does not take %j for %j', (answer, gold) => {
    expect(sameText(answer, gold)).toBe(false);
    expect(sameText(gold, answer)).toBe(false);
  });

  it('normalises to a fixed point', () => {
    for (const text of ['The "the (a) Hague".', '* the', 'a an the x', '« The »']) {
      expect(normaliseText(normaliseText(text))).toBe(normaliseText(text));
    }
  });

  it('accepts any of the gold answers', async () => {
    const judge = exactJudge();
    expect(await judge.judge(question(['Roma', 'Rome']), 'rome')).toEqual({ correct: true, judge: 'exact' });
    expect(await judge.judge(question(['Roma', 'Rome']), 'Paris')).toEqual({ correct: false, judge: 'exact' });
  });

  it('gives no verdict without gold, rather than a wrong one', async () => {
    await expect(exactJudge().judge(question([]), 'rome')).rejects.toThrow(JudgeError);
    await expect(exactJudge().judge(question([]), 'rome')).rejects.toThrow('question q7: no gold answer');
  });
});

function question(answers: readonly string[]): Question {
  return { id: 'q7', type: 'fact', text: 'Which city?', images: [], answers };
}
