import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { launchPlan, serve } from '../../../src/engines/sglang/serve.js';
import { EngineUnavailableError } from '../../../src/errors.js';

const fake = new URL('./fake-server.mjs', import.meta.url).pathname;
let folder = '';
/** Stands where Python would: drops `-m sglang.launch_server` and runs the fake. */
let python = '';

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'ssr-serve-'));
  python = join(folder, 'python');
  await writeFile(python, `#!/bin/sh\nshift 2\nexec "${process.execPath}" "${fake}" "$@"\n`);
  await chmod(python, 0o755);
});

afterAll(() => rm(folder, { recursive: true }));

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

const start = async (behaviour: string, options = {}) =>
  serve({ model: 'some/model', port: await freePort(), python, extraArguments: ['--behaviour', behaviour], ...options });

describe('serve', () => {
  it('waits until the server computes, shows its lines, and stops it', async () => {
    const lines: string[] = [];
    const server = await start('serve', { onLine: (line: string) => lines.push(line) });
    expect(await (await fetch(`${server.url}/model_info`)).json()).toEqual({ model_path: 'm' });
    await server.stop();
    const { exitCode, lastLines } = await server.ended;
    expect(exitCode).toBe(0);
    expect(lines).toEqual(lastLines);
    expect(lines).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/--model-path some\/model .*--page-size 1 .*--enable-metrics/),
        'retokenise: 1',
        'stopping',
      ]),
    );
    await expect(fetch(`${server.url}/model_info`)).rejects.toThrow();
  });

  it('does not take another server on the port for its own', async () => {
    const first = await start('serve');
    const port = Number(new URL(first.url).port);
    await expect(start('serve', { port })).rejects.toThrow(/the port is taken.*choose another port/);
    await first.stop();
  });

  it('shows the last lines of a server that fails', async () => {
    const error = await start('crash').catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(EngineUnavailableError);
    expect((error as Error).message).toMatch(
      /ended before it was ready \(exit code 3\), found its last lines: loading 11 .*loading 29 \| RuntimeError: no GPU/,
    );
  });

  it.each(['silent', 'dead-scheduler'])(
    'gives up a %s server after its limit and leaves no process behind',
    async (behaviour) => {
      const lines: string[] = [];
      await expect(start(behaviour, { readyTimeoutMs: 3_000, onLine: (line: string) => lines.push(line) })).rejects.toThrow(
        EngineUnavailableError,
      );
      expect(lines.at(-1)).toBe('stopping');
    },
  );

  it('can be cancelled while the server loads', async () => {
    const cancel = new AbortController();
    setTimeout(() => cancel.abort(new Error('enough')), 300);
    await expect(start('silent', { signal: cancel.signal })).rejects.toThrow('enough');
  });

  it('says that there is no such program', async () => {
    await expect(serve({ model: 'm', port: await freePort(), python: join(folder, 'nowhere') })).rejects.toThrow(
      /ended before it was ready.*ENOENT/,
    );
  });

  it('adds what a machine without a GPU needs, lets extra flags come last, and puts no key into the environment', () => {
    const plan = launchPlan({
      model: 'm',
      port: 1,
      device: 'cpu',
      extraArguments: ['--page-size', '16'],
      apiKey: 'k',
      environment: { X: '1' },
    });
    expect(plan.arguments.slice(-2)).toEqual(['--page-size', '16']);
    expect(plan.arguments).toEqual(expect.arrayContaining(['--device', 'cpu', '--disable-overlap-schedule', '--api-key', 'k']));
    expect(plan.environment).toEqual({
      SGLANG_MM_AVOID_RETOKENIZE: '1',
      SGLANG_VLM_CACHE_SIZE_MB: '2048',
      SGLANG_USE_CPU_ENGINE: '1',
      X: '1',
    });
    expect(launchPlan({ model: 'm', port: 1 }).arguments).toEqual(expect.arrayContaining(['--chunked-prefill-size', '8192']));
  });
});
