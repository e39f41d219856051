import { describe, expect, it } from 'vitest';
import { diagnose } from '../../../src/engines/sglang/doctor.js';
import type { Check, DoctorOptions } from '../../../src/engines/sglang/doctor-check.js';
import { REAL_SURROUNDINGS } from '../../../src/engines/sglang/surroundings.js';
import type { Tokenizer } from '../../../src/types.js';
import type { StandIn } from './stand-in.js';
import { modelFolder, STOP, standIn } from './support.js';

const TOKENS: Readonly<Record<string, number>> = {
  '<|im_start|>': 496,
  '<|im_end|>': STOP,
  '<|vision_start|>': 498,
  '<|vision_end|>': 499,
  '<|image_pad|>': 500,
};

/** One id per character, and the added tokens whole. */
const tokenizer: Tokenizer = {
  encode: (text) =>
    text
      .split(/(<\|\w+\|>)/)
      .flatMap((part) => (part in TOKENS ? [TOKENS[part] as number] : [...part].map((character) => character.charCodeAt(0)))),
  decode: (ids) => String.fromCharCode(...ids),
  idOf: (token) => TOKENS[token] as number,
  addedTokens: Object.keys(TOKENS),
  sha256: '',
};

async function examine(server: StandIn, options: Partial<DoctorOptions> = {}): Promise<Check[]> {
  const checks: Check[] = [];
  const base = {
    url: server.url,
    tokenizer,
    modelFolder: await modelFolder(),
    isolationKey: 'doctor',
    flush: true,
    requestTimeoutMs: 5_000,
    preflightTimeoutMs: 5_000,
  };
  for await (const check of diagnose({ ...base, ...options })) checks.push(check);
  return checks;
}

const statuses = (checks: readonly Check[]) => Object.fromEntries(checks.map(({ name, status }) => [name, status]));

describe('doctor', () => {
  it('finds a sound server sound', async () => {
    const checks = await examine(await standIn({ serverInfo: { enable_deterministic_inference: true } }, 2), {
      margins: [0, 1, 2],
    });
    expect(statuses(checks)).toEqual({
      preflight: 'pass',
      alignment: 'pass',
      'cache reuse': 'pass',
      'image drift': 'pass',
      'red and blue': 'pass',
      'batch or rows': 'pass',
      'noise floor': 'pass',
      'seeded samples': 'pass',
      abort: 'pass',
      flush: 'pass',
    });
    expect(checks.every(({ remedy }) => remedy === null)).toBe(true);
    const detail = (name: string) => checks.find((check) => check.name === name)?.detail;
    expect(detail('red and blue')).toMatch(/^8 concurrent questions about a red or a blue square: 0 saw the other one/);
    expect(detail('noise floor')).toMatch(/0.0000 nat.*0 of 3 logged margins \(0.0%\) are below it/);
    expect(detail('batch or rows')).toBe('candidates go as one batch without pictures and as one batch with pictures');
  });

  it('says what an old release costs, without failing it', async () => {
    const checks = await examine(await standIn({ version: '0.5.18', pageSize: 16 }), { flush: false });
    expect(statuses(checks)).toMatchObject({
      preflight: 'warn',
      'cache reuse': 'pass',
      'batch or rows': 'pass',
      'seeded samples': 'warn',
    });
    expect(checks.find(({ name }) => name === 'batch or rows')?.detail).toMatch(/one request each with pictures/);
    expect(checks.some(({ name }) => name === 'flush')).toBe(false);
  });

  it('asks an older server by its own pages', async () => {
    const checks = await examine(await standIn({ oldNames: true }, 2));
    expect(statuses(checks)).toMatchObject({ preflight: 'warn', abort: 'pass', flush: 'pass' });
  });

  it('stops at a preflight that fails', async () => {
    const checks = await examine(await standIn({ serverInfo: { disable_radix_cache: true } }));
    expect(checks).toEqual([
      {
        name: 'preflight',
        status: 'fail',
        detail: expect.stringMatching(/prefix cache is off/),
        remedy: 'Start the server without --disable-radix-cache.',
      },
    ]);
  });

  it('sees drift, pictures of another request, and a cache that does not work', async () => {
    const server = await standIn();
    server.fault({ kind: 'drift', after: 5, times: 1 });
    const checks = await examine(server);
    const failed = checks.filter(({ status }) => status === 'fail');
    expect(failed.length).toBe(1);
    expect(failed[0]?.detail).toMatch(/the server counted another prompt/);
    expect(failed[0]?.remedy).toMatch(/SGLANG_MM_AVOID_RETOKENIZE=1/);
  });

  it('notices vision features that outlive their weights', async () => {
    // The stand-in keeps its model over an update, as a server with a stale feature cache keeps its pictures.
    const server = await standIn();
    const checks = await examine(server, { otherVisionWeights: '/models/other' });
    expect(checks.at(-1)).toMatchObject({
      name: 'fresh pictures after an update',
      status: 'fail',
      remedy: expect.stringMatching(/SGLANG_VLM_CACHE_SIZE_MB=0/),
    });
    const updates = server.requests
      .filter(({ path }) => path === '/update_weights_from_disk')
      .map(({ body }) => [body.model_path, body.weight_version]);
    expect(updates).toEqual([
      ['/models/other', 'ssr-doctor'],
      ['hash', 'default'],
    ]);
  });

  it('warns when the cache cannot be flushed now, and fails without the key to do it', async () => {
    const busy = await standIn();
    busy.fault({ kind: 'status', path: '/flush_cache', status: 400, body: 'Flush cache failed.\n' });
    const hurried = { ...REAL_SURROUNDINGS, clock: () => performance.now() * 20 };
    expect(statuses(await examine(busy, { surroundings: hurried })).flush).toBe('warn');
    const locked = await standIn({ adminKey: 'secret' });
    const checks = await examine(locked);
    expect(checks.find(({ name }) => name === 'flush')).toMatchObject({
      status: 'fail',
      remedy: expect.stringMatching(/admin key/),
    });
  });
});
