import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { readMinibatch } from '../../src/training/minibatch.js';
import { ssr } from '../cli/run.js';

it('ssr rollout writes a minibatch of the embedded engine, the same one for the same seed', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'ssr-rollout-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const draw = async (name: string, concurrency: string) => {
    const output = join(folder, name);
    const words = ['--benchmark', 'micro', '--split', 'dev', '--questions', '2', '--group', '3', '--seed', '5', '--workers', '1'];
    const { exitCode, stdout } = await ssr('rollout', ...words, '--tau', '2', '--concurrency', concurrency, '--output', output);
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/^6 trajectories of 2 questions: /);
    return readMinibatch(output);
  };
  const first = await draw('first', '1');
  expect(first.header).toMatchObject({ group: 3, tau: 2, temperature: 1, engine: 'embedded' });
  expect(await draw('second', '4')).toEqual(first);
}, 60_000);

it('says what a command lacks', async () => {
  const missing = await ssr('train', 'grpo', '--config', 'nowhere.json');
  expect(missing).toMatchObject({
    exitCode: 1,
    stderr: expect.stringMatching(/nowhere\.json: cannot read the config, found ENOENT/),
  });
  const noPlace = await ssr('rollout', '--benchmark', 'micro');
  expect(noPlace).toMatchObject({
    exitCode: 1,
    stderr: expect.stringMatching(/no place for the minibatch; expected --output FOLDER/),
  });
  const words = ['--questions', '1', '--group', '2', '--output', join(tmpdir(), 'ssr-none')];
  const other = await ssr('rollout', '--benchmark', 'micro', '--split', 'dev', '--reasoning', 'none', ...words);
  expect(other.stderr).toMatch(/this way to reason cannot be trained; expected selection .* found none/);
  const noCount = await ssr('rollout', '--benchmark', 'micro', '--output', 'x', '--group', '0');
  expect(noCount.stderr).toMatch(/--group: not a count; expected a whole number, at least 1, found 0/);
});
