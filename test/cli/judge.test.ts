import { cp, readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { JudgedRun } from '../../src/cli/judge-run.js';
import { readEpisodes } from '../../src/evaluation/episodes-file.js';
import type { Episode } from '../../src/evaluation/records.js';
import type { Summary } from '../../src/reports/summary.js';
import { temporaryFolder } from '../data/support.js';
import { type Behaviour, type LoopbackJudge, startJudge } from '../judges/loopback-judge.js';
import { ssr } from './run.js';

const say = (verdict: string): Behaviour => ({ kind: 'say', text: `<verdict>${verdict}</verdict>` });

/** What the judge does with each answer; the number counts the requests about it from 0. */
const behaviours: Readonly<Record<string, (number: number) => Behaviour>> = {
  'said otherwise': () => say('correct'),
  'something else': () => say('wrong'),
  malformed: () => ({ kind: 'say', text: 'It might be right.' }),
  empty: () => ({ kind: 'say', text: null }),
  slow: () => ({ kind: 'slow', ms: 400, text: '<verdict>correct</verdict>' }),
  'too many': (number) => (number < 2 ? { kind: 'status', status: 429, headers: { 'retry-after': '0' } } : say('correct')),
  broken: () => ({ kind: 'status', status: 500 }),
};

let scratch: string;
let run: string;
let server: LoopbackJudge;
let ids: string[];
let repaired = false;

beforeAll(async () => {
  scratch = await temporaryFolder();
  run = join(scratch, 'run');
  server = await startJudge(({ body }) => {
    const text = JSON.stringify(body.messages);
    const known = Object.entries(behaviours).find(([answer]) => text.includes(answer));
    if (known === undefined) throw new Error(`asked about something else: ${text}`);
    if (repaired) return say('wrong');
    const asked = server.requests.filter((request) => JSON.stringify(request.body.messages).includes(known[0]));
    return known[1](asked.length - 1);
  });
  const index = (await readFile(resolve('benchmarks/micro/data/dev/index.jsonl'), 'utf8')).trim().split('\n').slice(0, 10);
  const questions = index.map((line) => JSON.parse(line) as { id: string; answers: string[] });
  ids = questions.map(({ id }) => id);
  const answers = [questions[0]!.answers[0]!.toUpperCase(), ...Object.keys(behaviours)];
  // Eight answers, a question whose engine fails (it is not in the script), and one that ends without an answer.
  const script = {
    ...Object.fromEntries(answers.map((answer, i) => [ids[i], [{ candidate: 0, action: `<answer> ${answer}</answer>` }]])),
    [ids[9]!]: [{ candidate: 0, action: 'no tag at all' }],
  };
  await writeFile(join(scratch, 'script.json'), JSON.stringify(script));
  await writeFile(join(scratch, 'ids.txt'), ids.join('\n'));
});

afterAll(() => server.close());

const evaluate = (...args: string[]) =>
  ssr(
    ...['eval', '--benchmark', 'micro', '--split', 'dev', '--engine', 'scripted', '--script', join(scratch, 'script.json')],
    ...['--ids', join(scratch, 'ids.txt'), '--output', run, ...args],
  );
const model = () => [
  ...['--judge', 'llm', '--judge-url', server.url, '--judge-model', 'reader'],
  ...['--judge-cache', join(scratch, 'cache.jsonl')],
];

async function episodes(folder = run): Promise<Episode[]> {
  const all: Episode[] = [];
  for await (const episode of readEpisodes(join(folder, 'episodes.jsonl'))) all.push(episode);
  return all;
}

const summary = async (): Promise<Summary> => JSON.parse(await readFile(join(run, 'summary.json'), 'utf8')) as Summary;

describe('ssr judge', () => {
  it('replaces the verdicts of a finished run, errors apart, and says how far the judges agree', async () => {
    expect((await evaluate()).exitCode).toBe(0);
    expect((await summary()).questions).toMatchObject({ planned: 10, scored: 9, unscored: { error: 1, 'judge-error': 0 } });
    const { exitCode, stdout } = await ssr('judge', run, ...model(), '--json');
    expect(exitCode).toBe(0);
    const judged = JSON.parse(stdout) as JudgedRun;
    expect(judged).toMatchObject({ former: 'exact', judge: 'llm:reader', answers: 8, errors: { JudgeError: 3 } });
    expect(judged.agreement).toMatchObject({
      n: 5,
      bothCorrect: 1,
      bothWrong: 1,
      firstOnly: [],
      secondOnly: [ids[1], ids[5], ids[6]],
      undecided: [ids[3], ids[4], ids[7]],
    });
    // (2/5 - 8/25) / (1 - 8/25)
    expect(judged.agreement.kappa).toBeCloseTo(2 / 17, 12);
    const { questions, success } = await summary();
    expect(questions).toEqual({
      planned: 10,
      scored: 6,
      unscored: { error: 1, 'tool-error': 0, cancelled: 0, 'judge-error': 3, 'no-gold': 0 },
      notRun: 0,
    });
    expect(success.overall).toMatchObject({ successes: 4, n: 6 });
    expect(await readFile(join(run, 'success.csv'), 'utf8')).toMatch(/^all,6,4,0\.666667,/m);
    const records = await episodes();
    expect(records.map(({ correct }) => correct)).toEqual([true, true, false, null, null, true, true, null, null, false]);
    expect(records.map(({ judge }) => judge)).toEqual(['exact', ...Array(7).fill('llm:reader'), null, null]);
    expect(records[7]?.error).toMatchObject({ kind: 'JudgeError', message: expect.stringMatching(/status 500.*5 of 5 tries/) });
  });

  it('asks again only where there was no verdict, and then not at all', async () => {
    repaired = true;
    const before = server.requests.length;
    const second = await ssr('judge', run);
    expect(second.stdout).toMatch(/^8 answers judged by llm:reader; before by llm:reader\nAgreement 100\.0% \(n = 5\)/);
    expect(server.requests.length - before).toBe(3);
    const third = await ssr('judge', run);
    expect(third).toMatchObject({
      exitCode: 0,
      stdout: expect.stringMatching(/n = 8.*\nSuccess 44\.44% \(4\/9\) before, 44\.44% \(4\/9\) now/),
    });
    expect(server.requests.length - before).toBe(3);
  });

  it('leaves a run that can be resumed with the new judge', async () => {
    const refused = await evaluate();
    expect(refused.stderr).toMatch(/holds another run: settings\.judge differs/);
    const resumed = await evaluate(...model());
    expect(resumed).toMatchObject({ exitCode: 0, stderr: expect.stringMatching(/Resuming: 9 of 10/) });
  });

  it('changes nothing with --compare', async () => {
    const before = await readFile(join(run, 'episodes.jsonl'));
    const { stdout, exitCode } = await ssr('judge', run, '--judge', 'exact', '--compare');
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(new RegExp(`Right before, wrong now \\(3\\): ${ids[1]}, ${ids[5]}, ${ids[6]}`));
    expect(await readFile(join(run, 'episodes.jsonl'))).toEqual(before);
  });

  it('changes nothing when the judge is down, or the data are others', async () => {
    const before = await readFile(join(run, 'episodes.jsonl'));
    const down = await ssr('judge', run, '--judge-model', 'other', '--judge-url', 'http://127.0.0.1:9/v1');
    expect(down).toMatchObject({
      exitCode: 3,
      stderr: expect.stringMatching(/the judge gave not one verdict; the run stays as it was/),
    });
    expect(await readFile(join(run, 'episodes.jsonl'))).toEqual(before);
    const copy = join(scratch, 'copy');
    await cp(run, copy, { recursive: true });
    const manifest = await readFile(join(copy, 'manifest.json'), 'utf8');
    await writeFile(join(copy, 'manifest.json'), manifest.replace(/"sha256": "[0-9a-f]{8}/, '"sha256": "00000000'));
    expect(await ssr('judge', copy)).toMatchObject({
      exitCode: 4,
      stderr: expect.stringMatching(/benchmark is not the one of the run/),
    });
    expect(await ssr('judge', scratch)).toMatchObject({ exitCode: 4, stderr: expect.stringMatching(/not a run/) });
  });

  it('goes back to the exact judge without a trace of the other', async () => {
    expect((await ssr('judge', run, '--judge', 'exact')).exitCode).toBe(0);
    expect((await evaluate()).stderr).toMatch(/Resuming: 9 of 10/);
    expect((await summary()).success.overall).toMatchObject({ successes: 1, n: 9 });
  });
});
