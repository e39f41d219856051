import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest';
import { addProfileCommand } from '../../src/cli/commands/profile.js';
import type { ProfileReport } from '../../src/reports/profile.js';

const folder = await mkdtemp(join(tmpdir(), 'ssr-profile-'));
afterAll(() => rm(folder, { recursive: true, force: true }));
afterEach(() => vi.restoreAllMocks());
const script = join(folder, 'script.json');
await writeFile(script, JSON.stringify({ '*': [{ candidate: 1, action: '<answer> x</answer>' }] }));

async function profile(...argv: string[]): Promise<string> {
  let output = '';
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    output += String(text);
    return true;
  });
  vi.spyOn(process.stderr, 'write').mockImplementation(() => true);
  const program = new Command('ssr').exitOverride();
  addProfileCommand(program, { setExitCode: () => undefined });
  const common = ['--benchmark', 'micro', '--engine', 'scripted', '--script', script, '--output', join(folder, 'out')];
  await program.parseAsync(['node', 'ssr', 'profile', ...argv, ...common]);
  return output;
}

describe('ssr profile', () => {
  it('asks a stratified sample once per load, after a warm-up outside of it', async () => {
    const report = JSON.parse(await profile('--samples', '6', '--loads', '1,2', '--format', 'json')) as ProfileReport;
    expect(report.sample).toHaveLength(6);
    expect(report.warmUp).toHaveLength(3);
    expect(report.warmUp.some(({ id }) => report.sample.includes(id))).toBe(false);
    expect(report.loads.map(({ load, questions }) => [load, questions.timed])).toEqual([
      [1, 6],
      [2, 6],
    ]);
    expect((await readdir(join(folder, 'out'))).sort()).toEqual([
      'profile.csv',
      'profile.json',
      'profile.md',
      'profile.tex',
      'profile.txt',
    ]);
    expect(JSON.parse(await readFile(join(folder, 'out/profile.json'), 'utf8'))).toEqual(report);
  });

  it('profiles another way of reasoning', async () => {
    const report = JSON.parse(await profile('none', '--samples', '3', '--cache', 'cold', '--format', 'json')) as ProfileReport;
    expect(report.arm).toBe('none');
    expect(report.loads[0]?.tokensPerTurn.inserted.mean).toBe(0);
  });

  it.each([
    [['--samples', '0'], '--samples: not a count'],
    [['--loads', '1,x'], '--loads: not a count'],
    [['guessing'], 'neither a run, nor a config'],
  ])('refuses %j', async (argv, message) => {
    await expect(profile(...argv)).rejects.toThrow(message);
  });
});
