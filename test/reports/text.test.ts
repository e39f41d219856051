import { describe, expect, it } from 'vitest';
import { latencyCsv, successCsv } from '../../src/reports/csv.js';
import { createSummary } from '../../src/reports/summary.js';
import { renderSummary } from '../../src/reports/terminal.js';
import { candidates, episode, turn, unscored } from './episodes.js';

const accumulator = createSummary({ planned: 5, candidates });
const ms = { prefill: 10, reasoning: 20.1234567, action: 30 };
accumulator.add(episode({ type: 'shape, "odd"', expected: ['r_KNOW'], turns: [turn({ chosen: 0, ms })] }));
accumulator.add(episode({ expected: ['r_KNOW'], correct: false, turns: [turn({ chosen: 1, ms })] }));
accumulator.add(unscored('tool-error'));
const summary = accumulator.result();
const empty = createSummary({ planned: 1, candidates }).result();

describe('success.csv', () => {
  it('has a row for all and one per type, quoted where needed', () => {
    expect(successCsv(summary).split('\n')).toEqual([
      'type,n,successes,success_rate,wilson95_low,wilson95_high,unscored',
      'all,2,1,0.5,0.094531,0.905469,1',
      'fact,1,0,0,0,0.793451,1',
      '"shape, ""odd""",1,1,1,0.206549,1,0',
      '',
    ]);
  });

  it('is empty where nothing is known', () => {
    expect(successCsv(empty).split('\n')[1]).toBe('all,0,0,,,,0');
  });
});

describe('latency.csv', () => {
  it('has a row per phase, in milliseconds', () => {
    const lines = latencyCsv(summary).trimEnd().split('\n');
    expect(lines[0]).toBe('per,phase,n,mean_ms,p50_ms,p95_ms');
    expect(lines).toContain('turn,reasoning,2,20.123,20.123,20.123');
    expect(lines).toContain('question,model,2,60.123,60.123,60.123');
    expect(lines).toHaveLength(1 + 6 + 7);
  });
});

describe('the report for the terminal', () => {
  const text = renderSummary(summary);

  it('shows success with n, interval and the questions without a verdict', () => {
    expect(cells(text, 'all')).toEqual(['all', '1', '2', '50.0%', '9.5% – 90.5%', '1']);
    expect(cells(text, 'fact')).toEqual(['fact', '0', '1', '0.0%', '0.0% – 79.3%', '1']);
    expect(text).toContain('Planned 5 · scored 2 · 1 tool-error · 2 not run');
    expect(text).toContain('Stops: answer 2 · tool-error 1');
  });

  it('shows selection, agreement, confusion, latency, throughput and work', () => {
    expect(cells(text, '0')).toEqual(['0', 'r_KNOW', '1', '50.0%']);
    expect(text).toContain('Action agreement: 50.0% (1 of 2 turns)');
    expect(text).toContain('Chosen as expected: 50.0% (1 of 2 turns on the reference path)');
    expect(cells(text, 'r_KNOW')).toEqual(['r_KNOW', '1', '1', '·']);
    expect(cells(text, 'reasoning per turn')).toEqual(['reasoning per turn', '20.1', '20.1', '20.1', '2']);
    expect(text).not.toContain('judge per question');
    expect(text).toMatch(/Reasoning: 745 scored tokens\/s \(all candidates\), 224 inserted tokens\/s/);
    expect(text).toContain('Percentiles: linear interpolation');
    expect(text).toMatch(/Work: 0 tokens computed, 0\.000 of the floor of 204; 60 from the cache/);
  });

  it('has colours only when asked for', () => {
    const escapeCharacter = String.fromCharCode(27);
    expect(text).not.toContain(escapeCharacter);
    expect(renderSummary(summary, { colours: true })).toContain(`${escapeCharacter}[1mtype${escapeCharacter}[22m`);
  });

  it('shows dashes, not zeros, where nothing is known', () => {
    const blank = renderSummary(empty);
    expect(cells(blank, 'all')).toEqual(['all', '0', '0', '–', '–', '']);
    expect(cells(blank, 'model per question')).toEqual(['model per question', '–', '–', '–', '0']);
    expect(blank).not.toContain('NaN');
  });
});

/** The cells of the first table row that starts with a text. */
function cells(text: string, start: string): string[] {
  const rows = text.split('\n').map((line) =>
    line
      .split('│')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
  return rows.find(([first]) => first === start) ?? [];
}
