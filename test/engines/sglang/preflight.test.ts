import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readModelFolder } from '../../../src/engines/sglang/model-folder.js';
import { atLeast, parseVersion } from '../../../src/engines/sglang/version.js';
import { DataError, EngineUnavailableError } from '../../../src/errors.js';
import { modelFolder, sglang, standIn } from './support.js';

describe('preflight', () => {
  const refused: readonly (readonly [string, Record<string, unknown>, RegExp])[] = [
    ['no prefix cache', { disable_radix_cache: true }, /the prefix cache is off.*Start the server without --disable-radix-cache/],
    ['truncation', { allow_auto_truncate: true }, /cut prompts silently.*--allow-auto-truncate/],
    ['no tokenizer', { skip_tokenizer_init: true }, /need the processor.*--skip-tokenizer-init/],
    ['image sizes by flag', { mm_process_config: { image: { max_pixels: 1 } } }, /re-tokenise prompts.*preprocessor_config.json/],
    ['old releases', { version: '0.5.12' }, /SGLang 0.5.12 decodes and re-tokenises.*Use SGLang 0.5.13 or newer/],
  ];
  it.each(refused)('refuses %s by name, with the remedy', async (_, serverInfo, message) => {
    const server = await standIn({ serverInfo });
    await expect(sglang([server.url])).rejects.toThrow(message);
  });

  it('refuses a model without eyes', async () => {
    const server = await standIn({ modelInfo: { has_image_understanding: false } });
    await expect(sglang([server.url])).rejects.toThrow(/cannot see pictures/);
  });

  it('says what it adapted', async () => {
    const server = await standIn({ version: '0.5.18', pageSize: 16 });
    const { engine } = await sglang([server.url]);
    expect(engine.servers[0]).toMatchObject({ imageBatches: false, pageSize: 16 });
    expect(engine.servers[0]?.notices).toEqual([
      'SGLang 0.5.18 fails batches with pictures: they are scored one request per row',
      'page size 16: up to 15 cached tokens are computed again per row',
      'no deterministic inference: sampled actions cannot be repeated from a seed',
    ]);
  });

  it('knows the old names of the information pages', async () => {
    const server = await standIn({ oldNames: true });
    const { engine } = await sglang([server.url]);
    expect((await engine.describe()).version).toBe('0.5.19');
  });

  it('fails on something that is no SGLang server, and on a port where nobody listens', async () => {
    const server = await standIn();
    server.fault({ kind: 'status', path: '/model_info', status: 404 });
    await expect(sglang([server.url])).rejects.toThrow(/this is no SGLang server/);
    const error = await sglang(['http://127.0.0.1:9']).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(EngineUnavailableError);
    expect((error as Error).message).toMatch(/http:\/\/127.0.0.1:9\/model_info: cannot reach the server.*ssr serve/);
  });

  it('wants addresses that are some', async () => {
    for (const url of ['localhost:30000', 'nowhere', ''])
      await expect(sglang([url])).rejects.toThrow(/--engine-url: no address of a server/);
  });

  it('notices a scheduler that is dead behind living pages', async () => {
    const server = await standIn();
    server.fault({ kind: 'hang' });
    await expect(sglang([server.url], { preflightTimeoutMs: 100 })).rejects.toThrow(
      /did not answer; expected an answer within 100 ms/,
    );
  });

  it('does not read what it does not know', async () => {
    const server = await standIn({ serverInfo: { page_size: 'many' } });
    await expect(sglang([server.url])).rejects.toThrow(/\/server_info: unreadable answer, found page_size/);
  });
});

describe('model folder', () => {
  it('gives vocabulary, vision ids and geometry', async () => {
    expect(await readModelFolder(await modelFolder())).toMatchObject({
      vocabularySize: 512,
      imagePadId: 500,
      visionIds: [500, 498, 499],
      geometry: { patchSize: 16, mergeSize: 2, minPixels: 4096, maxPixels: 65536 },
    });
  });

  it('names file and field of what is missing', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'ssr-sglang-'));
    await expect(readModelFolder(folder)).rejects.toThrow(/config.json: cannot read the served model.*Give --model/);
    await writeFile(
      join(folder, 'config.json'),
      '{"text_config":{"vocab_size":0,"max_position_embeddings":1},"image_token_id":1}',
    );
    await expect(readModelFolder(folder)).rejects.toThrow(/config.json: text_config.vocab_size/);
    await writeFile(join(folder, 'config.json'), '{"text_config":');
    const error = await readModelFolder(folder).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(DataError);
    expect((error as Error).message).toMatch(/config.json: not JSON/);
    await rm(folder, { recursive: true });
  });
});

describe('versions', () => {
  it('compare by number, and unknown ones are at least nothing', () => {
    expect(parseVersion('0.5.13.post1')).toEqual([0, 5, 13]);
    expect(parseVersion('v0.6.0rc1')).toEqual([0, 6, 0]);
    expect(parseVersion('0.0.0.dev0')).toBeNull();
    expect(parseVersion(undefined)).toBeNull();
    expect(atLeast([0, 5, 19], 0, 5, 19)).toBe(true);
    expect(atLeast([0, 5, 18], 0, 5, 19)).toBe(false);
    expect(atLeast([0, 6, 0], 0, 5, 19)).toBe(true);
    expect(atLeast([1, 0, 0], 0, 5, 19)).toBe(true);
    expect(atLeast(null, 0, 0, 1)).toBe(false);
  });
});
