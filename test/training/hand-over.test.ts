import { createHash } from 'node:crypto';
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { createHandOver } from '../../src/cli/hand-over.js';
import { completeSettings } from '../../src/cli/settings.js';
import { type Parts, wireParts } from '../../src/cli/wire.js';
import { createEmbeddedEngine } from '../../src/engines/embedded/engine.js';
import { updateWeights } from '../../src/engines/sglang/weight-update.js';
import { resizedSize } from '../../src/media/geometry.js';
import { decodeRgb } from '../../src/media/image.js';
import { resizeBicubic } from '../../src/media/resize.js';
import type { HandOver } from '../../src/training/loop.js';
import type { Engine, Image, TokenContext } from '../../src/types.js';
import { type StandIn, startStandIn } from '../engines/sglang/stand-in.js';

const MODEL = 'benchmarks/micro/model';
let other: string;
let engines: { readonly old: Engine; readonly new: Engine };
let parts: Parts;

beforeAll(async () => {
  other = await mkdtemp(join(tmpdir(), 'ssr-other-vision-'));
  await cp(MODEL, other, { recursive: true });
  await scrambleVision(join(other, 'model.safetensors'));
  engines = {
    old: await createEmbeddedEngine(MODEL, { workers: 1 }),
    new: await createEmbeddedEngine(other, { workers: 1 }),
  };
  parts = await wireParts(await completeSettings({ benchmark: 'micro', split: 'dev' }), {});
}, 60_000);

afterAll(async () => {
  await Promise.all([engines?.old.close(), engines?.new.close()]);
  await rm(other, { recursive: true, force: true });
});

/** Halves the weights that read patches: other vision features, everything else as it was. */
async function scrambleVision(path: string): Promise<void> {
  const file = await readFile(path);
  const headerLength = Number(file.readBigUInt64LE(0));
  const header = JSON.parse(file.subarray(8, 8 + headerLength).toString()) as Record<string, { data_offsets: [number, number] }>;
  const [start = 0, end = 0] = header['model.visual.patch_embed.proj.weight']?.data_offsets ?? [];
  expect(end).toBeGreaterThan(start);
  const weights = file.subarray(8 + headerLength + start, 8 + headerLength + end);
  // bfloat16: the sign is the highest bit of the second byte.
  for (let i = 1; i < weights.length; i += 6) weights[i] = (weights[i] ?? 0) ^ 0x80;
  await writeFile(path, file);
}

/** What SGLang knows a picture by: its pixels as the model sees them. */
async function seenAs(engine: Engine, { bytes, width, height }: Image): Promise<string> {
  const { rgb } = await decodeRgb(bytes);
  const { geometry } = await engine.describe();
  return createHash('sha256')
    .update(resizeBicubic(rgb, { width, height }, resizedSize({ width, height }, geometry)))
    .digest('hex');
}

/** A server that takes new weights; a `stale` one goes on serving pictures that it has seen as it saw them first. */
async function serverWith(stale: boolean): Promise<StandIn> {
  let current = engines.old;
  const seen = new Map<string, Engine>();
  const serving = async ({ images }: TokenContext): Promise<Engine> => {
    const keys = await Promise.all(images.map((image) => seenAs(engines.old, image)));
    const known = keys.map((key) => seen.get(key)).find((engine) => engine !== undefined);
    for (const key of keys) if (!seen.has(key)) seen.set(key, current);
    return stale ? (known ?? current) : current;
  };
  const engine: Engine = {
    describe: () => engines.old.describe(),
    prefill: async (context, options) => (await serving(context)).prefill(context, options),
    score: async (context, rows, options) => (await serving(context)).score(context, rows, options),
    generate: async (context, sampling, options) => (await serving(context)).generate(context, sampling, options),
    release: async (trajectory) => void (await Promise.all([engines.old.release(trajectory), engines.new.release(trajectory)])),
    close: async () => undefined,
  };
  const server = await startStandIn(engine, {
    imagePadId: parts.tokenizer.idOf('<|image_pad|>'),
    onUpdate: (folder) => {
      current = folder === other ? engines.new : engines.old;
    },
  });
  onTestFinished(() => server.close());
  return server;
}

async function handOverTo(server: StandIn): Promise<HandOver> {
  const settings = await completeSettings({ benchmark: 'micro', split: 'dev', engine: 'sglang', engineUrl: [server.url] });
  const handOver = createHandOver(settings, parts, {});
  onTestFinished(() => handOver.close());
  return handOver;
}

describe('hand-over to a running SGLang server', () => {
  it('pauses, waits, updates, checks the version, continues', async () => {
    const server = await serverWith(false);
    const handOver = await handOverTo(server);
    await handOver.serve({ step: 0, weights: MODEL });
    const before = server.requests.length;
    const engine = await handOver.serve({ step: 1, weights: other });
    expect((await engine.describe()).weights).toBe('step-1');
    const paths = server.requests.slice(before, before + 5).map(({ path }) => path);
    expect(paths).toEqual(['/pause_generation', '/v1/loads', '/update_weights_from_disk', '/model_info', '/continue_generation']);
  });

  it('refuses a server that keeps old vision features, and says what to do', async () => {
    const handOver = await handOverTo(await serverWith(true));
    await handOver.serve({ step: 0, weights: MODEL });
    await expect(handOver.serve({ step: 1, weights: other })).rejects.toThrow(
      /vision features of older weights; .* nats apart\. Start the server with SGLANG_VLM_CACHE_SIZE_MB=0/,
    );
  });

  it('refuses a server that serves another version than it was given', async () => {
    const server = await startStandIn(engines.old, { imagePadId: 1, modelInfo: { weight_version: 'default' } });
    onTestFinished(() => server.close());
    const update = { urls: [server.url], folder: other, version: 'step-3' };
    await expect(updateWeights(update)).rejects.toThrow(/serves other weights than it was given; expected step-3, found default/);
    expect(server.requests.at(-1)?.path).toBe('/continue_generation');
  });

  it('touches no weights while something runs, and lets it go on', async () => {
    const server = await serverWith(false);
    server.fault({
      kind: 'status',
      path: '/v1/loads',
      status: 200,
      body: '{"loads":[{"num_running_reqs":1,"num_waiting_reqs":0}]}',
      times: 99,
    });
    const update = { urls: [server.url], folder: other, version: 'step-3', idleWithinMs: 300 };
    await expect(updateWeights(update)).rejects.toThrow(/does not become idle; .*found 1 requests/);
    const paths = server.requests.map(({ path }) => path);
    expect(paths).not.toContain('/update_weights_from_disk');
    expect(paths.at(-1)).toBe('/continue_generation');
  });
});

describe('hand-over to the embedded engine', () => {
  it('serves the new folder under its own hash', async () => {
    const handOver = createHandOver(await completeSettings({ benchmark: 'micro', split: 'dev', workers: 1 }), parts, {});
    onTestFinished(() => handOver.close());
    const first = (await (await handOver.serve({ step: 0, weights: MODEL })).describe()).weights;
    const second = (await (await handOver.serve({ step: 1, weights: other })).describe()).weights;
    expect(second).not.toBe(first);
  });
});
