import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { Episode } from '../../src/evaluation/records.js';
import { macroAverage } from '../../src/reports/macro.js';
import { againstPaper, countBehind, parsePublished } from '../../src/reports/paper.js';
import { repeatsOf } from '../../src/reports/repeats.js';
import { createRunResult, type RunFacts, type RunResult, successTable } from '../../src/reports/table.js';
import { renderTable } from '../../src/reports/table-formats.js';
import { episode, unscored } from './episodes.js';

const ids = (count: number): string[] => Array.from({ length: count }, (_, i) => `q${i}`);

function runOf(episodes: readonly Episode[], facts: Partial<RunFacts> = {}): RunResult {
  const run = createRunResult({
    folder: 'results/run',
    benchmark: 'mmsearch',
    system: 'one',
    publishedQuestions: null,
    plan: episodes.map(({ id }) => id),
    summary: null,
    ...facts,
  });
  for (const one of episodes) run.add(one);
  return run.result();
}

/** `right` of `n` questions. */
const counted = (right: number, n: number, facts: Partial<RunFacts> = {}): RunResult =>
  runOf(
    ids(n).map((id, i) => episode({ id, correct: i < right, turns: [] })),
    facts,
  );

describe('the ledger', () => {
  const judgeError = { kind: 'JudgeError', message: 'no reply' };
  const episodes = [
    ...ids(4).map((id, i) => episode({ id, correct: i < 3 })),
    { ...unscored('error'), id: 'e1' },
    { ...unscored('tool-error'), id: 'e2' },
    { ...unscored('answer', judgeError), id: 'e3', answer: 'x' },
    { ...unscored('answer'), id: 'no-gold', answer: 'x' },
  ];

  it('sums to the plan; errors are outside one rate and wrong in the other, no-gold is in neither', () => {
    const run = runOf(episodes, { plan: [...episodes.map(({ id }) => id), 'late', 'later'] });
    expect(run.ledger).toEqual({
      planned: 10,
      scored: 4,
      unscored: { error: 1, 'tool-error': 1, cancelled: 0, 'judge-error': 1, 'no-gold': 1 },
      notRun: 2,
    });
    expect(run.completeCase).toMatchObject({ successes: 3, n: 4, rate: 0.75 });
    expect(run.errorsAsWrong).toMatchObject({ successes: 3, n: 9 });
    const table = successTable([run], []);
    expect(table.warnings).toEqual([
      'mmsearch (results/run): 2 of 10 planned questions have no record: late, later',
      'mmsearch (results/run): 3 of 10 questions ended in an error, which counts under "errors as wrong" only',
    ]);
    const text = renderTable(table, null, 'terminal');
    expect(text).toMatch(/benchmark .*planned .*error .*tool-error .*judge-error .*no-gold .*not run/);
    expect(text).not.toContain('cancelled');
    expect(text).toMatch(/mmsearch .* 3 .* 4 .* 75\.00 .* 33\.33 .* 10 /);
  });

  it('names records that are repeated or not in the plan, and counts each question once', () => {
    const run = runOf([episode({ id: 'a' }), episode({ id: 'a', correct: false }), episode({ id: 'b' })], { plan: ['a'] });
    expect(run.foreign).toEqual(['a', 'b']);
    expect(run.completeCase).toMatchObject({ successes: 1, n: 1 });
    expect(successTable([run], []).warnings.join()).toMatch(/2 records left out, repeated or not in the plan: a, b/);
  });

  it('says when summary.json is another', () => {
    expect(successTable([counted(3, 5, { summary: { successes: 4, n: 5 } })], []).warnings).toEqual([
      'mmsearch (results/run): summary.json says 4/5, the records say otherwise and count',
    ]);
    expect(successTable([counted(3, 5, { summary: { successes: 3, n: 5 } })], []).warnings).toEqual([]);
  });
});

describe('the macro average', () => {
  it('weighs benchmarks alike; its error comes from each rate', () => {
    const { mean, standardError, m } = macroAverage([
      { rate: 0.5, standardError: 0.03 },
      { rate: 0.1, standardError: 0.04 },
    ]);
    expect(mean).toBeCloseTo(0.3, 12);
    expect(standardError).toBeCloseTo(0.025, 12);
    expect(m).toBe(2);
  });

  it('is none where a benchmark has no rate', () => {
    expect(
      macroAverage([
        { rate: null, standardError: null },
        { rate: 1, standardError: 0 },
      ]),
    ).toEqual({ m: 2, mean: null, standardError: null });
  });

  it('agrees with sqrt(sum p (1 - p) / n) / m on counts', () => {
    const table = successTable([counted(5, 10), counted(20, 25, { benchmark: 'livevqa' })], ['livevqa']);
    expect(table.rows.map(({ benchmark }) => benchmark)).toEqual(['livevqa', 'mmsearch']);
    expect(table.macro?.completeCase.mean).toBeCloseTo(0.65, 12);
    expect(table.macro?.completeCase.standardError).toBeCloseTo(Math.sqrt(0.025 + 0.0064) / 2, 12);
  });

  it('is not made of two systems', () => {
    const table = successTable(
      [counted(5, 10), counted(6, 10, { system: 'other' }), counted(1, 2, { benchmark: 'livevqa' })],
      [],
    );
    expect(table.macro).toBeNull();
    expect(table.warnings.join()).toMatch(/mmsearch occurs in runs of different settings/);
  });
});

describe('repeats', () => {
  const verdicts = (...list: (boolean | null)[]) => new Map(list.map((verdict, i) => [`q${i}`, verdict] as const));

  it('give pass@k, the spread, and an error over questions', () => {
    const repeats = repeatsOf([
      verdicts(true, true, false, true),
      verdicts(true, false, false, null),
      verdicts(true, false, false, false),
    ]);
    expect(repeats).toMatchObject({ tries: 3, questions: 4, complete: 3, rightTimes: [1, 1, 0, 1] });
    // Complete questions: 3, 1 and 0 of 3 right. pass@2 of the second is 1 - C(2,2)/C(3,2) = 2/3.
    expect(repeats.passAtK[0]).toBeCloseTo((1 + 1 / 3) / 3, 12);
    expect(repeats.passAtK[1]).toBeCloseTo((1 + 2 / 3) / 3, 12);
    expect(repeats.passAtK[2]).toBeCloseTo(2 / 3, 12);
    const shares = [1, 1 / 3, 0, 1 / 2];
    const average = shares.reduce((sum, share) => sum + share) / 4;
    expect(repeats.mean).toBeCloseTo(average, 12);
    const variance = shares.reduce((sum, share) => sum + (share - average) ** 2, 0) / 3;
    expect(repeats.standardError).toBeCloseTo(Math.sqrt(variance / 4), 12);
  });

  it('are one row of the table', () => {
    const table = successTable([counted(5, 10, { folder: 'a' }), counted(7, 10, { folder: 'b' })], []);
    expect(table.rows.length).toBe(1);
    expect(table.rows[0]?.success).toBeCloseTo(0.6, 12);
    const text = renderTable(table, null, 'terminal');
    expect(text).toMatch(/mmsearch, try 2 .*70\.00/);
    expect(text).toMatch(/mmsearch, mean .*60\.00/);
    expect(text).toMatch(/pass@2 .*right 0x .*right 2x/);
  });
});

describe('the published table', () => {
  const published = parsePublished(readFileSync('results/paper/success.csv', 'utf8'), 'success.csv');
  const sizes = new Map([
    ['mmsearch', 171],
    ['hr-mmsearch', 305],
  ]);

  it('is read, and says which percentages are whole counts', () => {
    expect(published.find(({ model, size }) => model === 'SSR' && size === '4B')?.average).toBe(61.37);
    expect(countBehind(61.4, 171)).toBe(105);
    expect(countBehind(51.18, 171)).toBeNull();
    expect(countBehind(17.06, 305)).toBeNull();
    for (let k = 0; k <= 305; k++) expect(countBehind(Number(((100 * k) / 305).toFixed(2)), 305)).toBe(k);
  });

  it('is set beside ours, with cells outside the interval marked', () => {
    const table = successTable([counted(105, 171), counted(120, 305, { benchmark: 'hr-mmsearch', folder: 'b' })], []);
    const comparison = againstPaper(table, published, sizes);
    const ssr = comparison.rows.find(({ model, size }) => model === 'SSR' && size === '4B');
    expect(ssr?.cells).toEqual([
      { percent: 61.4, count: 105, n: 171, outside: false },
      { percent: 30.16, count: 92, n: 305, outside: true },
    ]);
    expect(ssr?.average).toBeNull();
    const text = renderTable(table, comparison, 'terminal');
    expect(text).toMatch(/SSR 4B\s+│? ?.*61\.40 .*30\.16\*/);
    expect(text).toMatch(/SSR 2B .*51\.18\*~ .*17\.06\*~/);
    expect(renderTable(table, comparison, 'csv')).toContain('paper,SSR,4B,hr-mmsearch,30.16,92,305,39.34,305,true');
  });

  it('refuses runs that it does not know, and files of another form', () => {
    expect(() => againstPaper(successTable([counted(1, 2, { benchmark: 'micro-plain' })], []), published, sizes)).toThrow(
      /nothing of these runs is published; expected a run on one of mmsearch/,
    );
    expect(() => parsePublished('a,b\n1,2', 'x.csv')).toThrow(/x\.csv: not a table of published rates/);
    expect(() => parsePublished('model,size,mmsearch,average,note\nSSR,4B,sixty,60,', 'x.csv')).toThrow(/x\.csv:2/);
  });
});

describe('formats', () => {
  const table = successTable([counted(1, 3, { folder: 'runs/a_b' })], []);

  it('csv has plain figures', () => {
    const [header, line] = renderTable(table, null, 'csv').split('\n');
    expect(header).toMatch(/^table,benchmark,run,successes,scored,success_rate,/);
    expect(line).toMatch(/^success,mmsearch,runs\/a_b,1,3,0\.33333333,/);
  });

  it('latex escapes, markdown has a ruler, json no verdict per question', () => {
    expect(renderTable(table, null, 'latex')).toMatch(
      /mmsearch & 1 & 3 & 33\.33 & .*success \\%|success \\%.*mmsearch & 1 & 3 & 33\.33/s,
    );
    expect(renderTable(table, null, 'markdown')).toMatch(/\| mmsearch \| 1 \| 3 \| 33\.33 \|/);
    const json = JSON.parse(renderTable(table, null, 'json')) as { rows: { runs: object[] }[] };
    expect(json.rows[0]?.runs[0]).not.toHaveProperty('verdicts');
  });
});
