// Reasoning latency on a real SGLang server on this CPU: choosing among six candidates against writing 65 and 110 tokens, by history.
// Both behind a prefilled h_t (method: the prefill is a phase of its own), in turn, each on a trajectory that the server never saw.
//   npx tsx scripts/sglang-cpu/reasoning-latency.ts [--repeats 20] [--dtype float32] [--histories 300,1000,3000]
//     [--attention released|short|shared] [--attention-threads 1] [-- server flags]
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import Table from 'cli-table3';
import sharp from 'sharp';
import { createSsrDialect } from '../../src/agent/dialects/ssr.js';
import { loadLibrary, tokeniseLibrary } from '../../src/agent/library.js';
import { selectionReasoner } from '../../src/agent/reasoning/selection.js';
import { loadTokenizer } from '../../src/agent/tokenizer.js';
import type { CallRecord } from '../../src/engines/sglang/calls.js';
import { createSglangEngine } from '../../src/engines/sglang/engine.js';
import { HttpClient, readText } from '../../src/engines/sglang/http.js';
import { serve } from '../../src/engines/sglang/serve.js';
import { REAL_SURROUNDINGS } from '../../src/engines/sglang/surroundings.js';
import { bootstrapInterval } from '../../src/evaluation/bootstrap.js';
import { describeDistribution, percentile } from '../../src/evaluation/statistics.js';
import { imageTokenCount } from '../../src/media/geometry.js';
import { loadImage } from '../../src/media/image.js';
import { packageRoot } from '../../src/paths.js';
import { createRandom } from '../../src/random.js';
import type { Image, Sampling, TokenContext } from '../../src/types.js';
import { ATTENTION_OPTIONS, attentionEnvironment } from './attention.js';
import { longContextCopy } from './model-folder.js';

const WRITTEN = [65, 110] as const;
const LONGEST = 110;
const MODEL = join(packageRoot(), 'benchmarks/micro/model');

const sampling: Sampling = { maxNewTokens: LONGEST, temperature: 0, topP: 1, topK: 0, seed: 0, stopIds: [], bannedIds: [] };

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    repeats: { type: 'string', default: '20' },
    dtype: { type: 'string', default: 'float32' },
    histories: { type: 'string', default: '300,1000,3000' },
    threads: { type: 'string', default: '1' },
    ...ATTENTION_OPTIONS,
    python: { type: 'string', default: join(packageRoot(), 'scripts/sglang-cpu/.venv/bin/python') },
    port: { type: 'string', default: '30108' },
    log: { type: 'boolean', default: false },
  },
});

const folder = await mkdtemp(join(tmpdir(), 'ssr-latency-'));
const model = await longContextCopy(MODEL, join(folder, 'model'), 8192);
const tokenizer = await loadTokenizer(model);
const server = await serve({
  model,
  port: Number(values.port),
  python: values.python,
  device: 'cpu',
  extraArguments: ['--dtype', values.dtype, ...positionals],
  environment: { OMP_NUM_THREADS: values.threads, ...attentionEnvironment(values) },
  readyTimeoutMs: 300_000,
  ...(values.log && { onLine: (line) => console.error(line) }),
});
const calls: CallRecord[] = [];
const engine = await createSglangEngine({
  urls: [server.url],
  modelFolder: model,
  isolationKey: `latency-${Date.now()}`,
  prefill: 'on',
  onCall: (call) => calls.push(call),
});
try {
  await measureAll();
  await decompose(1000);
} finally {
  await engine.close();
  await server.stop();
  await rm(folder, { recursive: true });
}

/** Milliseconds of one repeat. */
interface Repeat {
  readonly selection: number;
  /** The server's own time for the scoring call. */
  readonly selectionServer: number | null;
  readonly written: ReadonlyMap<number, number>;
  /** A call that computes one position: what any call costs. */
  readonly roundTrip: number;
}

async function measureAll(): Promise<void> {
  const picture = await loadImage(
    await sharp({ create: { width: 128, height: 128, channels: 3, background: 'teal' } })
      .png()
      .toBuffer(),
    'teal',
  );
  const cells = [
    ...values.histories.split(',').map((tokens) => ({ tokens: Number(tokens), images: [] as Image[] })),
    { tokens: 1000, images: [picture] },
  ];
  const repeats = cells.map((): Repeat[] => []);
  for (let n = -3; n < Number(values.repeats); n++) {
    for (const step of cells.keys()) {
      const i = (step + n + 3) % cells.length; // each cell comes first in turn: what one leaves behind falls on all of them
      const { tokens, images } = cells[i] as (typeof cells)[number];
      const repeat = await measure(tokens, images, n);
      if (n >= 0 && repeat) repeats[i]?.push(repeat); // the first three warm the server up
    }
  }
  print(cells, repeats);
}

/** What a scoring call is made of: calls that differ in one thing, in turn, behind a cached text history. */
async function decompose(tokens: number): Promise<void> {
  const { candidates, random } = await setting(0);
  const rows = candidates.map(({ ids }) => ids);
  const first = rows[0] as readonly number[];
  const http = new HttpClient({ url: server.url, surroundings: REAL_SURROUNDINGS });
  const page = { method: 'GET', path: '/model_info', timeoutMs: 5_000, idempotent: true } as const;
  const steps: [string, (context: TokenContext) => Promise<unknown>][] = [
    ['a page that computes nothing (HTTP)', () => http.fetch(page, readText)],
    ['one position, no log-probs', (context) => engine.prefill(context)],
    ['one position, with log-probs', (context) => engine.score(context, [first.slice(0, 1)])],
    [`one row of ${first.length} tokens`, (context) => engine.score(context, [first])],
    [
      `${rows.length} rows of one token`,
      (context) =>
        engine.score(
          context,
          rows.map((ids) => ids.slice(0, 1)),
        ),
    ],
    [`${rows.length} rows, ${rows.flat().length} tokens`, (context) => engine.score(context, rows)],
  ];
  const times = new Map(steps.map(([name]) => [name, { client: [] as number[], calls: [] as CallRecord[] }]));
  for (let n = -3; n < Number(values.repeats); n++) {
    for (const [name, step] of steps) {
      const context = history(`${name} ${n}`, tokens, [], random);
      await engine.prefill(context);
      const before = calls.length;
      const client = await timed(() => step(context));
      if (n < 0) continue;
      times.get(name)?.client.push(client);
      times.get(name)?.calls.push(...calls.slice(before).slice(-1));
    }
  }
  await http.close();
  const table = new Table({
    head: ['a call', 'client ms', 'outside the server', 'until dispatched', 'scheduler to end'],
    colAligns: ['left', 'right', 'right', 'right', 'right'],
    style: { head: [], border: [] },
  });
  for (const [name, { client, calls: made }] of times) {
    const median = (of: (call: CallRecord, n: number) => number | null) =>
      ms(describeDistribution(made.flatMap((call, n) => of(call, n) ?? [])).p50);
    table.push([
      name,
      ms(describeDistribution(client).p50),
      median(({ serverMs }, n) => serverMs && (client[n] as number) - serverMs),
      median(({ dispatchMs }) => dispatchMs),
      median(({ serverMs, dispatchMs }) => serverMs && dispatchMs && serverMs - dispatchMs),
    ]);
  }
  console.log(`What a scoring call is made of, by the server's own timestamps, history of ${tokens} tokens, medians:`);
  console.log(table.toString());
}

/** Null where the model ended its thought before the last token. */
async function measure(tokens: number, images: readonly Image[], n: number): Promise<Repeat | null> {
  const { candidates, random } = await setting(n);
  const contextOf = (name: string) => history(`${name} ${tokens} ${images.length} ${n}`, tokens, images, random);
  const chosen = contextOf('select');
  const reasoner = selectionReasoner(engine, candidates, { alpha: 1, tau: 0 });
  await engine.prefill(chosen);
  const selection = await timed(() => reasoner.reason(chosen, sampling, random));
  const selectionServer = calls.at(-1)?.serverMs ?? null;
  const written = await write(contextOf('write'));
  const idle = contextOf('idle');
  await engine.prefill(idle);
  const roundTrip = await timed(() => engine.score(idle, [[1]]));
  return written && { selection, selectionServer, written, roundTrip };
}

/** From the call to the arrival of the 65th and the 110th token, as a written thought is timed. */
async function write(context: TokenContext): Promise<Map<number, number> | null> {
  await engine.prefill(context);
  const times = new Map<number, number>();
  const started = performance.now();
  let count = 0;
  await engine.generate(context, sampling, {
    onToken: () => {
      if ((WRITTEN as readonly number[]).includes(++count)) times.set(count, performance.now() - started);
    },
  });
  return times.size === WRITTEN.length ? times : null;
}

async function setting(n: number) {
  const dialect = createSsrDialect('', tokenizer.addedTokens);
  const library = await loadLibrary(join(packageRoot(), 'configs/libraries/default.json'));
  return { candidates: tokeniseLibrary(library, dialect, tokenizer), random: createRandom(1000 + n) };
}

/** Random text of `tokens` positions in all, the pictures among them. */
function history(trajectory: string, tokens: number, images: readonly Image[], random: () => number): TokenContext {
  const pads = images.flatMap(() => tokenizer.encode('<|vision_start|><|image_pad|><|vision_end|>'));
  const geometry = { patchSize: 16, mergeSize: 2, minPixels: 16384, maxPixels: 16384 };
  const imagePositions = images.reduce((sum, { width, height }) => sum + imageTokenCount(width, height, geometry), 0);
  const text = Array.from({ length: tokens - imagePositions - 2 * images.length }, () => 300 + Math.floor(900 * random()));
  return { trajectory, ids: [...text.slice(0, 10), ...pads, ...text.slice(10)], images, length: tokens };
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await work();
  return performance.now() - started;
}

function print(cells: readonly { tokens: number; images: readonly Image[] }[], repeats: readonly (readonly Repeat[])[]): void {
  const head = ['history', 'pictures', 'n', 'selection ms', 'p95', 'server ms', 'one-position call ms'];
  const table = new Table({
    head: [...head, ...WRITTEN.flatMap((length) => [`${length} written ms`, 'change'])],
    colAligns: Array(head.length + 2 * WRITTEN.length).fill('right'),
    style: { head: [], border: [] },
  });
  for (const [i, { tokens, images }] of cells.entries()) {
    const rows = repeats[i] ?? [];
    const selections = rows.map(({ selection }) => selection);
    const { p50, p95 } = describeDistribution(selections);
    const server = describeDistribution(rows.flatMap(({ selectionServer }) => selectionServer ?? [])).p50;
    const trip = describeDistribution(rows.map(({ roundTrip }) => roundTrip)).p50;
    const writing = WRITTEN.flatMap((length) => {
      const times = rows.map(({ written }) => written.get(length) as number);
      return [ms(describeDistribution(times).p50), change(selections, times)];
    });
    table.push([tokens, images.length, rows.length, ms(p50), ms(p95), ms(server), ms(trip), ...writing]);
  }
  console.log(
    `Medians over n repeats; change of the median with its bootstrap interval. ${values.dtype}, torch threads: ${values.threads}, attention: ${values.attention} on ${values['attention-threads']}.`,
  );
  console.log(table.toString());
}

/** Repeats are drawn whole: both arms of a repeat met the same load. */
function change(selections: readonly number[], times: readonly number[]): string {
  const ratio = (draw: Int32Array): number => {
    const median = (all: readonly number[]) =>
      percentile(
        [...draw].map((i) => all[i] as number).sort((a, b) => a - b),
        0.5,
      ) as number;
    return 100 * (median(selections) / median(times) - 1);
  };
  const estimate = ratio(Int32Array.from(selections.keys()));
  const interval = bootstrapInterval([selections.length], ([draw]) => ratio(draw as Int32Array), { seed: 1 });
  return interval
    ? `${estimate.toFixed(1)}% [${interval.low.toFixed(1)}, ${interval.high.toFixed(1)}]`
    : `${estimate.toFixed(1)}%`;
}

function ms(value: number | null): string {
  return value === null ? '–' : value.toFixed(1);
}
