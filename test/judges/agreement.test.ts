import { describe, expect, it } from 'vitest';
import { agreementOf } from '../../src/judges/agreement.js';

function verdicts(values: string): Map<string, boolean | null> {
  return new Map([...values].map((value, i) => [`q${i}`, value === '?' ? null : value === '1']));
}

describe('agreement of two judges', () => {
  it("is Cohen's kappa, with the ids behind it", () => {
    // 20 both correct, 5 first only, 10 second only, 15 both wrong: the textbook's kappa of 0.4.
    const first = verdicts('1'.repeat(25) + '0'.repeat(25));
    const second = verdicts('1'.repeat(20) + '0'.repeat(5) + '1'.repeat(10) + '0'.repeat(15));
    const result = agreementOf(first, second);
    expect(result).toMatchObject({ n: 50, bothCorrect: 20, bothWrong: 15, agreement: 0.7 });
    expect(result.kappa).toBeCloseTo(0.4, 12);
    expect(result.firstOnly).toEqual(['q20', 'q21', 'q22', 'q23', 'q24']);
    expect(result.secondOnly.length).toBe(10);
  });

  it('leaves out what one of them did not decide', () => {
    expect(agreementOf(verdicts('110?'), verdicts('1?00'))).toMatchObject({ n: 2, kappa: 1, undecided: ['q1', 'q3'] });
    expect(agreementOf(verdicts('11'), verdicts('1'))).toMatchObject({ n: 1, undecided: ['q1'] });
  });

  it('has no kappa without variation or without answers', () => {
    expect(agreementOf(verdicts('111'), verdicts('111'))).toMatchObject({ agreement: 1, kappa: null });
    expect(agreementOf(new Map(), new Map())).toMatchObject({ n: 0, agreement: null, kappa: null });
  });
});
