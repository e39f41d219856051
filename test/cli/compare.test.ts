import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest';
import { addCompareCommand } from '../../src/cli/commands/compare.js';
import { parseArms, readArm } from '../../src/cli/commands/compare-arms.js';
import { turned } from '../../src/cli/commands/compare-run.js';
import { DataError, UsageError } from '../../src/errors.js';

const folder = await mkdtemp(join(tmpdir(), 'ssr-compare-'));
afterAll(() => rm(folder, { recursive: true, force: true }));
afterEach(() => vi.restoreAllMocks());

/** Candidate 3 and a thought that the model closes; each way of reasoning takes what it needs. */
const selecting = { '*': [{ candidate: 3, action: '<answer> x</answer>' }] };
const writing = { '*': [{ candidate: 3, action: '<thinking>I guess that it is red.</thinking>\n<answer> x</answer>' }] };

async function compare(...argv: string[]): Promise<{ output: string; exitCode: number | null }> {
  let output = '';
  let exitCode: number | null = null;
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    output += String(text);
    return true;
  });
  vi.spyOn(process.stderr, 'write').mockImplementation(() => true);
  const program = new Command('ssr').exitOverride();
  addCompareCommand(program, {
    setExitCode: (code) => {
      exitCode = code;
    },
  });
  await program.parseAsync(['node', 'ssr', 'compare', ...argv]);
  return { output, exitCode };
}

async function live(name: string, ...argv: string[]): Promise<{ output: string; folder: string }> {
  const script = join(folder, 'script.json');
  await writeFile(script, JSON.stringify(argv.includes('freeform') ? writing : selecting));
  const out = join(folder, name);
  const common = ['--benchmark', 'micro', '--limit', '3', '--engine', 'scripted', '--script', script, '--output', out];
  return { output: (await compare(...argv, ...common)).output, folder: out };
}

describe('ssr compare', () => {
  it('runs arms in turn on the same questions, keeps a folder per arm and writes every format', async () => {
    const { output, folder: out } = await live(
      'selections',
      'ssr',
      'first=selection:scorer=first-divergent',
      'index',
      '--format',
      'json',
    );
    const comparison = JSON.parse(output) as { arms: { name: string }[]; comparisons: unknown[] };
    expect(comparison.arms.map(({ name }) => name)).toEqual(['ssr', 'first', 'index']);
    expect(comparison.comparisons).toHaveLength(2);
    expect((await readdir(out)).sort()).toEqual([
      'comparison.csv',
      'comparison.json',
      'comparison.md',
      'comparison.tex',
      'comparison.txt',
      'first',
      'index',
      'ssr',
    ]);
    const lines = (await readFile(join(out, 'index', 'episodes.jsonl'), 'utf8')).trim().split('\n');
    expect(lines).toHaveLength(3);
  });

  it('reads written reasoning as its own arm, and finished runs as arms again', async () => {
    const { folder: out } = await live('written', 'freeform', 'freeform');
    const arm = await readArm('freeform', [join(out, 'freeform')]);
    const outcomes = [...arm.runs[0]!.outcomes.values()];
    expect(outcomes.map(({ writtenTurns }) => writtenTurns)).toEqual([1, 1, 1]);
    const { output } = await compare(join(out, 'freeform'), join(out, 'freeform-2'), '--output', join(folder, 'again'));
    expect(output).toContain('success within 2 points');
  });

  it('refuses runs that are unlike, by name', async () => {
    const [a, b] = [await live('three', 'ssr', 'ssr'), await live('other', 'freeform', 'freeform')];
    const arms = [join(a.folder, 'ssr'), join(b.folder, 'freeform'), '--output', join(folder, 'unlike')];
    await expect(compare(...arms)).rejects.toThrow('cannot compare: model differs');
    expect((await compare(...arms, '--allow', 'model')).output).toContain('differs in model');
  });

  it('refuses a run that is not finished', async () => {
    const { folder: out } = await live('cut', 'ssr', 'ssr');
    const path = join(out, 'ssr', 'episodes.jsonl');
    const [first] = (await readFile(path, 'utf8')).split('\n');
    await writeFile(path, `${first}\n`);
    await expect(readArm('cut', [join(out, 'ssr')])).rejects.toThrow(DataError);
    await expect(readArm('cut', [join(out, 'ssr')])).rejects.toThrow('2 of 3 questions missing');
  });

  it.each([
    ['--margin', 'two', 'not a margin'],
    ['--allow', 'weather', 'no such condition'],
  ])('refuses %s %s', async (flag, value, message) => {
    await expect(compare('ssr', 'ssr', '--benchmark', 'micro', flag, value)).rejects.toThrow(message);
  });
});

describe('an arm', () => {
  it('is a way of reasoning with options for the run and for the reasoning, or has a name of its own', () => {
    expect(parseArms(['ssr', 'sum=selection:alpha=0,scorer=prior-corrected'])).toMatchObject([
      { name: 'ssr', flags: { reasoning: 'selection' } },
      { name: 'sum', flags: { reasoning: 'selection', alpha: '0', scorer: 'prior-corrected' } },
    ]);
  });

  it('may name a file among its options', () => {
    expect(parseArms(['two=selection:library=configs/libraries/two.json'])).toMatchObject([
      { name: 'two', flags: { library: 'configs/libraries/two.json' } },
    ]);
  });

  it('is numbered where its name comes again', () => {
    expect(parseArms(['ssr:engineUrl=http://a:1|http://b:2'])).toMatchObject([
      { flags: { reasoning: 'selection', engineUrl: ['http://a:1', 'http://b:2'] } },
    ]);
    expect(parseArms(['freeform', 'freeform']).map(({ name }) => name)).toEqual(['freeform', 'freeform-2']);
  });

  it.each([
    ['guessing', 'neither a run, nor a config, nor a way of reasoning'],
    ['selection:colour=red', 'selection:colour=red'],
    ['none.json', 'no such config'],
  ])('%s is refused', (spec, message) => {
    expect(() => parseArms([spec])).toThrow(UsageError);
    expect(() => parseArms([spec])).toThrow(message);
  });

  it('begins every question one place later', () => {
    expect([0, 1, 2, 3].map((question) => turned(['a', 'b', 'c'], question).join(''))).toEqual(['abc', 'bca', 'cab', 'abc']);
  });
});
