import { cp, mkdir, mkdtemp, readdir, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { ssr } from './run.js';

const model = resolve('benchmarks/micro/model');
let scratch: string;

beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), 'ssr-bad-'));
});

/** One line on stderr that says what and where, the exit code, nothing on stdout, and no results folder. */
async function expectRefusal(args: string[], exitCode: number, message: RegExp): Promise<void> {
  const output = join(scratch, `run-${Math.random().toString(36).slice(2)}`);
  const outcome = await ssr('eval', '--benchmark', 'micro', '--limit', '2', '--output', output, ...args);
  expect(outcome.stderr).toMatch(message);
  expect(outcome.stderr.trimEnd().split('\n').length).toBe(1);
  expect(outcome).toMatchObject({ exitCode, stdout: '' });
  await expect(readdir(output)).rejects.toThrow(/ENOENT/);
}

async function file(name: string, content: string): Promise<string> {
  const path = join(scratch, name);
  await writeFile(path, content);
  return path;
}

describe('a wrong library', () => {
  const entry = '{"text": "t", "expected_actions": ["answer"]}';
  it.each([
    ['missing', null, /cannot read the library/],
    ['not-json', '{"name": "x", ', /not JSON/],
    ['list', '[]', /library: .*expected object/i],
    ['no-name', `{"entries": {"a": ${entry}}}`, /name/],
    ['no-entries', '{"name": "x"}', /entries/],
    ['empty', '{"name": "x", "entries": {}}', /no entries.*at least one/],
    ['blank-text', '{"name": "x", "entries": {"a": {"text": " ", "expected_actions": []}}}', /entries\.a\.text: blank/],
    [
      'unknown-action',
      '{"name": "x", "entries": {"a": {"text": "t", "expected_actions": ["fly"]}}}',
      /entries\.a\.expected_actions\.0/,
    ],
    [
      'forbidden-tag',
      '{"name": "x", "entries": {"a": {"text": "</thinking>", "expected_actions": []}}}',
      /forbidden tag.*<\/thinking>/,
    ],
    ['repeated-id', `{"name": "x", "entries": {"a": ${entry}, "a": ${entry}}}`, /entries\.a: id occurs twice/],
  ])('%s', async (name, content, message) => {
    const path = content === null ? join(scratch, 'missing.json') : await file(`library-${name}.json`, content);
    await expectRefusal(['--library', path], 1, message);
    await expectRefusal(['--library', path], 1, new RegExp(path.replaceAll('.', '\\.')));
  });
});

describe('a wrong config', () => {
  it.each([
    ['missing', null, /cannot read the config/],
    ['not-json', '{', /not JSON/],
    ['list', '[1]', /expected object/i],
    ['unknown-key', '{"tempreture": 1}', /tempreture.*Known keys/],
    ['wrong-type', '{"maxTurns": "8"}', /maxTurns: .*number/],
    ['too-small', '{"maxTurns": 0}', /maxTurns: /],
    ['not-whole', '{"maxNewTokens": 1.5}', /maxNewTokens: /],
    ['out-of-range', '{"alpha": 2}', /alpha: /],
    ['negative', '{"tau": -1}', /tau: /],
    ['unknown-engine', '{"engine": "abacus"}', /engine: .*embedded/],
  ])('%s', async (name, content, message) => {
    const path = content === null ? join(scratch, 'missing.json') : await file(`config-${name}.json`, content);
    await expectRefusal(['--config', path], 1, message);
  });
});

describe('a wrong flag', () => {
  it.each([
    [['--alpha', 'x'], /--alpha/],
    [['--limit', ''], /--limit/],
    [['--sample', '3'], /--limit and --sample/],
    [['--split', 'nonsense'], /plain, hard, dev.*nonsense/],
    [['--benchmark', 'nonsense'], /nonsense/],
    [['--engine', 'scripted'], /--script/],
    [['--prompt', '/no/such.txt'], /\/no\/such\.txt: cannot read the prompt/],
  ])('%j', (args, message) => expectRefusal(args, 1, message));

  it('names an unknown id', async () => {
    await expectRefusal(['--ids', await file('ids.txt', 'micro-plain-0001\nnobody\n')], 1, /nobody/);
  });
});

describe('a broken checkpoint', () => {
  async function broken(name: string, change: (folder: string) => Promise<void>): Promise<string> {
    const folder = join(scratch, `model-${name}`);
    await cp(model, folder, { recursive: true });
    await change(folder);
    return folder;
  }

  /** Rewrites the safetensors header, bytes of the tensors untouched. */
  async function rewriteHeader(folder: string, change: (header: Record<string, { dtype: string; shape: number[] }>) => void) {
    const path = join(folder, 'model.safetensors');
    const bytes = await readFile(path);
    const length = Number(bytes.readBigUInt64LE(0));
    const header = JSON.parse(bytes.subarray(8, 8 + length).toString()) as Record<string, { dtype: string; shape: number[] }>;
    change(header);
    const text = Buffer.from(JSON.stringify(header));
    const size = Buffer.alloc(8);
    size.writeBigUInt64LE(BigInt(text.length));
    await writeFile(path, Buffer.concat([size, text, bytes.subarray(8 + length)]));
  }

  async function rewriteConfig(folder: string, change: (config: Record<string, unknown>) => void): Promise<void> {
    const path = join(folder, 'config.json');
    const config = JSON.parse(await readFile(path, 'utf8')) as Record<string, unknown>;
    change(config);
    await writeFile(path, JSON.stringify(config));
  }

  const tensor = (header: object): string =>
    Object.keys(header).find((key) => key.includes('layers.1.self_attn.q_proj')) as string;

  it('lacks a tensor', async () => {
    const folder = await broken('lacks', (path) => rewriteHeader(path, (header) => delete header[tensor(header)]));
    await expectRefusal(['--model', folder], 4, /layers\.1\.self_attn\.q_proj/);
  });

  it('has a tensor of another shape', async () => {
    const folder = await broken('shape', (path) =>
      rewriteHeader(path, (header) => {
        header[tensor(header)]!.shape.reverse();
        header[tensor(header)]!.shape[0]! *= 2;
        header[tensor(header)]!.shape[1]! /= 2;
      }),
    );
    await expectRefusal(['--model', folder], 4, /layers\.1\.self_attn\.q_proj.*expected.*found/);
  });

  it('has a tensor of an unsupported type', async () => {
    const folder = await broken('type', (path) =>
      rewriteHeader(path, (header) => {
        header[tensor(header)]!.dtype = 'I16';
      }),
    );
    await expectRefusal(['--model', folder], 4, /layers\.1\.self_attn\.q_proj.*I16/);
  });

  it('is cut short', async () => {
    const folder = await broken('short', async (path) => {
      const weights = join(path, 'model.safetensors');
      await writeFile(weights, (await readFile(weights)).subarray(0, 1_000_000));
    });
    await expectRefusal(['--model', folder], 4, /model\.safetensors/);
  });

  it('is another architecture', async () => {
    const folder = await broken('architecture', (path) =>
      rewriteConfig(path, (config) => {
        config.architectures = ['LlamaForCausalLM'];
        config.model_type = 'llama';
      }),
    );
    await expectRefusal(['--model', folder], 4, /llama/i);
  });

  it('is not there', () => expectRefusal(['--model', join(scratch, 'nowhere')], 4, /nowhere/));
});

describe('an output folder', () => {
  const args = ['eval', '--benchmark', 'micro', '--limit', '2'];

  it('that holds other files is refused and left alone', async () => {
    const folder = join(scratch, 'occupied');
    await mkdir(folder);
    await writeFile(join(folder, 'thesis.tex'), 'x');
    const { exitCode, stderr } = await ssr(...args, '--output', folder);
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(/occupied: the output folder holds files that are not a run.*thesis\.tex/);
    expect(await readdir(folder)).toEqual(['thesis.tex']);
  });

  it('that holds a data set is refused, with --fresh too, and left alone', async () => {
    const folder = join(scratch, 'dataset');
    await cp(resolve('benchmarks/micro/data/dev'), folder, { recursive: true });
    const before = await readdir(join(folder, 'images'));
    const { exitCode, stderr } = await ssr(...args, '--output', folder, '--fresh');
    expect({ exitCode, stderr }).toMatchObject({ exitCode: 1, stderr: expect.stringMatching(/not a run/) });
    expect(await readdir(join(folder, 'images'))).toEqual(before);
  });

  it('that a crash left with a lock or half a manifest is used', async () => {
    for (const [name, content] of [
      ['run.lock', '999999999'],
      ['manifest.json.part', '{'],
    ] as const) {
      const folder = join(scratch, `crashed-${name}`);
      await mkdir(folder);
      await writeFile(join(folder, name), content);
      expect((await ssr(...args, '--output', folder)).exitCode).toBe(0);
    }
  });

  it('that cannot be written is refused before the run', async () => {
    for (const folder of ['/proc/ssr-run', '/dev/null/run']) {
      const { exitCode, stderr } = await ssr(...args, '--output', folder);
      expect(exitCode).toBe(4);
      expect(stderr).toMatch(new RegExp(`^ssr: ${folder}: .*output folder`));
      expect(stderr.trimEnd().split('\n').length).toBe(1);
    }
  });
});

describe('a picture that cannot be decoded', () => {
  it('ends a run that consists of it with code 4 and says why', async () => {
    await writeFile(join(scratch, 'garbage.jpg'), 'no picture');
    const questions = await file(
      'garbage.jsonl',
      '{"id": "1", "question": "Who?", "images": ["garbage.jpg"], "answers": ["Ada"]}\n',
    );
    const run = ['--model', model, '--output', join(scratch, 'garbage-run')];
    const { exitCode, stdout } = await ssr('eval', '--benchmark', questions, ...run);
    expect(exitCode).toBe(4);
    expect(stdout).toMatch(/1 × DataError.*garbage\.jpg/);
  });

  it('is refused when it is no file at all', async () => {
    const questions = await file(
      'device.jsonl',
      '{"id": "1", "question": "Who?", "images": ["/dev/zero"], "answers": ["Ada"]}\n',
    );
    const run = ['--model', model, '--output', join(scratch, 'device-run')];
    const { exitCode, stdout } = await ssr('eval', '--benchmark', questions, ...run);
    expect(exitCode).toBe(4);
    expect(stdout).toMatch(/\/dev\/zero: not a file/);
  });

  it('is an error of its question, with the file named, and never a wrong answer', async () => {
    const data = join(scratch, 'data');
    await cp(resolve('benchmarks/micro/data'), data, { recursive: true });
    const index = await readFile(join(data, 'plain/index.jsonl'), 'utf8');
    const { images } = JSON.parse(index.split('\n')[0] as string) as { images: [string] };
    await writeFile(join(data, 'plain', images[0]), 'no picture');
    const { loadMicro } = await import('../../benchmarks/micro/index.js');
    await expect((await loadMicro('plain', data)).load('micro-plain-0001')).rejects.toThrow(new RegExp(images[0]));
  });
});
