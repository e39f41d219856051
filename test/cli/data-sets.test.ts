import { writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { benchmarks, dataSources, trainingSets } from '../../benchmarks/registry.js';
import { fixtures } from '../../scripts/fixtures/index.js';
import type { SuccessTable, TableRow } from '../../src/reports/table.js';
import { temporaryFolder } from '../data/support.js';
import { ssr } from './run.js';

/** Enough for every question but MAT-Search's 150. */
const limit = 5;
let root: string;
let table: SuccessTable;

const evaluate = (benchmark: string, output: string) =>
  ssr(
    ...['eval', '--benchmark', benchmark, '--data', join(root, 'data'), '--limit', String(limit), '--output', output],
    ...['--model', resolve('benchmarks/micro/model'), '--prompt', resolve('configs/prompts/micro.txt')],
    ...['--max-turns', '2', '--max-new-tokens', '24'],
  );

/** Sources of all ten sets in their own schemas → prepared → asked by the embedded engine → one table. */
beforeAll(async () => {
  root = await temporaryFolder();
  for (const [name, { write }] of Object.entries(fixtures)) await write(join(root, 'sources', name));
  const early = await evaluate('all', join(root, 'runs/benchmarks'));
  expect(early).toMatchObject({ exitCode: 4, stderr: expect.stringMatching(/^ssr: .*mmsearch: not a prepared data set.*\n$/) });
  const prepared = await ssr(
    ...['data', 'prepare', 'all', '--from', join(root, 'sources'), '--data', join(root, 'data'), '--allow-count-mismatch'],
  );
  expect(prepared).toMatchObject({ exitCode: 0, stderr: '' });
  expect(prepared.stdout.trimEnd().split('\n').length).toBe(dataSources.length);
  const all = await evaluate('all', join(root, 'runs/benchmarks'));
  expect(all.exitCode).toBe(0);
  for (const { name } of trainingSets) expect((await evaluate(name, join(root, 'runs/training', name))).exitCode).toBe(0);
  table = JSON.parse((await ssr('report', join(root, 'runs'), '--format', 'json')).stdout) as SuccessTable;
  expect((await ssr('report', join(root, 'runs/benchmarks'))).stdout).toBe(all.stdout);
}, 300_000);

function row(name: string): TableRow {
  return table.rows.find(({ benchmark }) => benchmark === name)!;
}

describe('every data set, from its source to the table', () => {
  it('is there, the benchmarks in the order of the published table', () => {
    expect(table.rows.map(({ benchmark }) => benchmark).slice(0, 7)).toEqual(benchmarks.map(({ name }) => name));
    expect(table.rows.map(({ benchmark }) => benchmark).sort()).toEqual(Object.keys(fixtures).sort());
  });

  it.each(dataSources.map(({ name }) => name))('%s: the ledger sums to the plan', (name) => {
    const { ledger } = row(name).runs[0]!;
    expect(ledger.planned).toBe(Math.min(limit, fixtures[name]!.questions));
    const unscored = Object.values(ledger.unscored).reduce((sum, count) => sum + count, 0);
    expect(ledger.scored + unscored).toBe(ledger.planned);
    expect(ledger.notRun).toBe(0);
  });

  it.each([
    ['fvqa-test', { error: 1 }],
    ['simplevqa', { error: 2 }],
    ['livevqa', { error: 1, 'no-gold': 1 }],
    ['infoseek', { 'no-gold': 1 }],
    ['mat-search', {}],
  ])('%s: damaged pictures are errors, missing answers are outside the rate', (name, expected) => {
    const none = { error: 0, 'tool-error': 0, cancelled: 0, 'judge-error': 0, 'no-gold': 0 };
    expect(row(name).runs[0]?.ledger.unscored).toEqual({ ...none, ...expected });
  });

  it('says that none has its published size, so that nobody compares the figures', () => {
    for (const { name, expected } of benchmarks) {
      expect(table.warnings.join('\n')).toMatch(
        new RegExp(`^${name} .* of ${expected.questions} published; not comparable`, 'm'),
      );
    }
  });

  it('MARS sets and files of anybody are asked where they lie', async () => {
    const args = [
      'data',
      'export',
      'fvqa-test',
      '--format',
      'mars',
      '--data',
      join(root, 'data'),
      '--output',
      join(root, 'mars'),
    ];
    expect((await ssr(...args)).stdout).toMatch(/^3 questions written.*\nleft out fvqa_test_3: /);
    await writeFile(join(root, 'own.jsonl'), '{"id": 7, "question": "Who?", "answers": ["Ada"]}\n');
    for (const benchmark of [`${join(root, 'mars/test_all.json')}#fvqa-test`, join(root, 'own.jsonl')]) {
      const { exitCode, stdout } = await evaluate(benchmark, join(root, 'other', String(benchmark.length)));
      expect(exitCode).toBe(0);
      expect(stdout).toMatch(benchmark.endsWith('own.jsonl') ? /Planned 1 · scored 1/ : /Planned 3 · scored 3/);
    }
  });
});
