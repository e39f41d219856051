// Kills a run at random moments, resumes it each time, and holds what is left against an uninterrupted run.
//   npm run check:resume -- [--kills 20] [--concurrency 16] [--split dev]
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual, parseArgs } from 'node:util';
import { execa } from 'execa';
import { readEpisodes } from '../../src/evaluation/episodes-file.js';

const { values } = parseArgs({
  options: {
    kills: { type: 'string', default: '20' },
    concurrency: { type: 'string', default: '16' },
    split: { type: 'string', default: 'dev' },
  },
});
const folder = await mkdtemp(join(tmpdir(), 'ssr-kill-'));
const settings = ['--benchmark', 'micro', '--split', values.split, '--concurrency', values.concurrency];
const start = (output: string) =>
  execa(process.execPath, ['bin/ssr.js', 'eval', ...settings, '--output', join(folder, output)], {
    reject: false,
    stdio: 'ignore',
  });

try {
  const started = performance.now();
  await start('whole');
  const wholeMs = performance.now() - started;
  const progress: number[] = [];
  while (progress.length < Number(values.kills)) {
    const run = start('killed');
    // Late enough to have begun, early enough that there is something left for the other kills.
    await sleep(500 + Math.random() * (wholeMs / 4));
    run.kill('SIGKILL');
    const { exitCode } = await run;
    const lines = await readFile(join(folder, 'killed/episodes.jsonl'), 'utf8').catch(() => '');
    progress.push(lines.split('\n').length - 1);
    if (exitCode === 0) break;
  }
  await start('killed');
  console.log(`${progress.length} kills; lines on disk after each: ${progress.join(' ')}`);
  const [whole, killed] = [await records('whole'), await records('killed')];
  const ids = killed.map(({ id }) => id);
  report(
    'planned ids, in order',
    isDeepStrictEqual(
      ids,
      whole.map(({ id }) => id),
    ),
  );
  report('no duplicates', new Set(ids).size === ids.length);
  report('equal records but for times', isDeepStrictEqual(killed, whole));
  report('equal success', isDeepStrictEqual(await success('killed'), await success('whole')));
} finally {
  await rm(folder, { recursive: true });
}

async function records(output: string) {
  const all = [];
  for await (const { timingMs: _, turns, ...rest } of readEpisodes(join(folder, output, 'episodes.jsonl'))) {
    all.push({ ...rest, turns: turns.map(({ timingMs: __, ...turn }) => turn) });
  }
  return all;
}

async function success(output: string): Promise<unknown> {
  const { success, questions, selection, work } = JSON.parse(
    await readFile(join(folder, output, 'summary.json'), 'utf8'),
  ) as Record<string, unknown>;
  return { success, questions, selection, work };
}

function report(what: string, holds: boolean): void {
  console.log(`${holds ? 'yes' : 'NO '}  ${what}`);
  if (!holds) process.exitCode = 1;
}
