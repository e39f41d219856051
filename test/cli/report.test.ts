import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import type { SuccessTable } from '../../src/reports/table.js';
import { temporaryFolder } from '../data/support.js';
import { episode } from '../reports/episodes.js';
import { ssr } from './run.js';

let scratch: string;
beforeAll(async () => {
  scratch = await temporaryFolder();
});

/** A finished run with so many right answers, as `ssr eval` leaves it. */
async function writeRun(folder: string, benchmark: string, right: number, n: number): Promise<void> {
  const ids = Array.from({ length: n }, (_, i) => `${benchmark}-${i}`);
  const name = { name: benchmark, split: 'test', sha256: 'f'.repeat(64) };
  const settings = { benchmark, judge: 'exact', judgeConcurrency: 8, seed: 42 };
  await mkdir(folder, { recursive: true });
  await writeFile(
    join(folder, 'manifest.json'),
    JSON.stringify({
      schema: 1,
      settings,
      identity: { settings, benchmark: name, judge: 'exact' },
      plan: ids,
      library: { candidates: [{ id: 'r_KNOW', expectedActions: ['answer'] }] },
    }),
  );
  const lines = ids.map((id, i) => `${JSON.stringify(episode({ id, correct: i < right, turns: [] }))}\n`);
  await writeFile(join(folder, 'episodes.jsonl'), lines.join(''));
}

describe('ssr report', () => {
  it('prints the published row from its counts', async () => {
    const counts: readonly [string, number, number, string][] = [
      ['infoseek', 1218, 2000, '60.90'],
      ['mat-search', 118, 150, '78.67'],
      ['mmsearch', 105, 171, '61.40'],
      ['hr-mmsearch', 92, 305, '30.16'],
      ['fvqa-test', 1264, 1800, '70.22'],
      ['simplevqa', 720, 1013, '71.08'],
      ['livevqa', 2060, 3602, '57.19'],
    ];
    const folder = join(scratch, 'published');
    for (const [name, right, n] of counts) await writeRun(join(folder, name), name, right, n);
    const { stdout, exitCode } = await ssr('report', folder, '--against', 'paper');
    expect(exitCode).toBe(0);
    for (const [name, right, n, percent] of counts) {
      expect(stdout).toMatch(new RegExp(`^│? ?${name} .*${right} .*${n} .* ${percent} `, 'm'));
    }
    expect(stdout).toMatch(/macro average .* 61\.37 ± 0\.87/);
    expect(stdout).toContain('standard error sqrt(sum of p(1 - p)/n) / m, m = 7');
    expect(stdout).toMatch(/these runs .*61\.40 .*30\.16 .*70\.22 .*71\.08 .*57\.19 .*78\.67 .*60\.90 .*61\.37/);
    expect(stdout).toMatch(/SSR 4B .*61\.40 .*30\.16 .*70\.22 .*71\.08 .*57\.19 .*78\.67 .*60\.90 .*61\.37/);
    expect(stdout).not.toContain('Note:');
  });

  it('says which rows are missing', async () => {
    const folder = join(scratch, 'missing');
    await writeRun(folder, 'mmsearch', 2, 4);
    const lines = (await readFile(join(folder, 'episodes.jsonl'), 'utf8')).split('\n');
    // The last line is torn.
    await writeFile(join(folder, 'episodes.jsonl'), `${lines.slice(1, 3).join('\n')}\n${lines[3]?.slice(0, 50)}`);
    const { stdout } = await ssr('report', folder);
    expect(stdout).toMatch(/2 of 4 planned questions have no record: mmsearch-0, mmsearch-3/);
    expect(stdout).toMatch(/1 lines of episodes\.jsonl cannot be read; resuming the run mends it/);
    expect(stdout).toMatch(/4 questions, of 171 published; not comparable/);
  });

  it('refuses what is no run, or no format', async () => {
    expect(await ssr('report', join(scratch, 'nowhere'))).toMatchObject({
      exitCode: 4,
      stderr: expect.stringMatching(/nowhere/),
    });
    await mkdir(join(scratch, 'empty'));
    expect(await ssr('report', join(scratch, 'empty'))).toMatchObject({
      exitCode: 4,
      stderr: expect.stringMatching(/no run here/),
    });
    expect((await ssr('report', scratch, '--format', 'pdf')).exitCode).toBe(1);
  });
});

describe('an engine that fails on a tenth of the questions', () => {
  it('shows as errors with both rates, never as wrong answers', async () => {
    const index = (await readFile(resolve('benchmarks/micro/data/dev/index.jsonl'), 'utf8')).trim().split('\n').slice(0, 50);
    const questions = index.map((line) => JSON.parse(line) as { id: string; answers: string[] });
    // The scripted engine throws on what its script does not have: every tenth question. Every fifth of the others is wrong.
    const asked = questions.filter((_, i) => i % 10 !== 9);
    const script = Object.fromEntries(
      asked.map(({ id, answers }, i) => [
        id,
        [{ candidate: 0, action: `<answer> ${i % 5 === 4 ? 'wrong' : answers[0]}</answer>` }],
      ]),
    );
    await writeFile(join(scratch, 'script.json'), JSON.stringify(script));
    const output = join(scratch, 'failing');
    const run = await ssr(
      ...['eval', '--benchmark', 'micro', '--split', 'dev', '--limit', '50', '--output', output],
      ...['--engine', 'scripted', '--script', join(scratch, 'script.json')],
    );
    expect(run.exitCode).toBe(0);
    const { stdout } = await ssr('report', output);
    expect(stdout).toMatch(/micro-dev .*36 .*45 .*80\.00 .*72\.00 .*50 .*5 /);
    expect(stdout).toMatch(/5 of 50 questions ended in an error, which counts under "errors as wrong" only/);
    const table = JSON.parse((await ssr('report', output, '--format', 'json')).stdout) as SuccessTable;
    expect(table.rows[0]?.runs[0]).toMatchObject({
      ledger: { planned: 50, scored: 45, unscored: { error: 5 }, notRun: 0 },
      completeCase: { successes: 36, n: 45 },
      errorsAsWrong: { successes: 36, n: 50 },
    });
    // A table made of another run's summary would be noticed.
    await rm(join(output, 'summary.json'));
    expect((await ssr('report', output)).exitCode).toBe(0);
  });
});

describe('ssr eval --repeat', () => {
  it('asks the same sample with other seeds, resumes, and prints pass@k', async () => {
    const args = ['eval', '--benchmark', 'micro', '--split', 'dev', '--sample', '6', '--temperature', '1', '--tau', '2'];
    const output = join(scratch, 'repeats');
    const { stdout, exitCode } = await ssr(...args, '--repeat', '3', '--output', output);
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/micro-dev, try 3 /);
    expect(stdout).toMatch(/pass@3/);
    const manifests = await Promise.all(
      [1, 2, 3].map(async (i) => JSON.parse(await readFile(join(output, `repeat-${i}/manifest.json`), 'utf8'))),
    );
    expect(new Set(manifests.map(({ settings }) => settings.seed)).size).toBe(3);
    expect(manifests[0].settings.seed).toBe(42);
    for (const { plan } of manifests) expect(plan).toEqual(manifests[0].plan);
    const again = await ssr(...args, '--repeat', '3', '--output', output);
    expect(again.stderr).toMatch(/Resuming: 6 of 6.*Resuming: 6 of 6.*Resuming: 6 of 6/s);
    expect(again.stdout).toBe(stdout);
    expect((await ssr('report', output)).stdout).toBe(stdout);
    expect(await ssr(...args, '--repeat', 'two')).toMatchObject({ exitCode: 1, stderr: expect.stringMatching(/--repeat/) });
  }, 120_000);
});
