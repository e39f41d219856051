import { describe, expect, it } from 'vitest';
import { JudgeError } from '../../src/errors.js';
import { exactJudge } from '../../src/judges/exact.js';
import { normaliseText, sameText } from '../../src/judges/text.js';
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

  const verdict = async (answer: string, changes: Partial<Question>): Promise<boolean> =>
    (await exactJudge().judge({ ...question(['5.0']), ...changes }, answer)).correct;

  it.each([
    ['5', '5.0', true],
    ['5.00', '5.0', true],
    ['1,800', '1800', true],
    ['.5', '0.5', true],
    ['1e3', '1000', true],
    ['5.1', '5.0', false],
    ['5 m', '5.0', false],
    ['007', '7', false],
    ['1,80', '180', false],
    ['-5', '5', false],
    ['five', '5', false],
  ])('takes the number %j for %j: %s', async (answer, gold, expected) => {
    expect(await verdict(answer, { answers: [gold] })).toBe(expected);
  });

  it.each([
    ['4.5', true],
    ['5.4', true],
    ['5.500', true],
    ['5.6', false],
    ['about 5', false],
    ['', false],
  ])('takes %j within 4.5 to 5.5: %s', async (answer, expected) => {
    expect(await verdict(answer, { ranges: [[4.5, 5.5]] })).toBe(expected);
  });

  const listed = "Is the cat left of the dog?\n(A) yes\n(B) no\nAnswer with the option's letter.";
  const dotted = 'Which one?\nA. a red van\nB. the blue van\nC. no van';
  it.each([
    [listed, 'A', 'A', true],
    [listed, '(a)', 'A', true],
    [listed, 'A) yes', 'A', true],
    [listed, '(A) Yes.', 'A', true],
    [listed, 'Option A', 'A', true],
    [listed, 'The answer is A.', 'A', true],
    [listed, 'yes', 'A', true],
    [listed, 'B', 'A', false],
    [listed, '(A) no', 'A', false],
    [listed, 'no', 'A', false],
    [listed, 'C', 'C', true],
    [listed, 'maybe', 'C', false],
    [dotted, 'blue van', 'B', true],
    [dotted, 'B: the blue van', 'B', true],
    [dotted, 'a blue van', 'A', false],
    [dotted, 'a van', 'A', false],
    ['Which letter is on the sign?', 'B is for bear', 'B', false],
  ])('in %j takes %j for %j: %s', async (text, answer, gold, expected) => {
    expect(await verdict(answer, { text, answers: [gold] })).toBe(expected);
  });

  it('gives no verdict without gold, rather than a wrong one', async () => {
    await expect(exactJudge().judge(question([]), 'rome')).rejects.toThrow(JudgeError);
    await expect(exactJudge().judge(question([]), 'rome')).rejects.toThrow('question q7: no gold answer');
  });
});

function question(answers: readonly string[]): Question {
  return { id: 'q7', type: 'fact', text: 'Which city?', images: [], answers };
}
