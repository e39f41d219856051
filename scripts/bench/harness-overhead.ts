// What the harness itself costs per turn, beside the engine and the tools: real runs against a server that answers at once
// (overhead) and against one that takes a fixed time per call (how much of the ideal throughput is reached).
//   npm run bench:overhead -- [--questions 128] [--history 6000] [--images 2] [--delay 50]
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import Table from 'cli-table3';
import { execa } from 'execa';
import sharp from 'sharp';
import type { Agent } from '../../src/agent/algorithm.js';
import { createSsrDialect } from '../../src/agent/dialects/ssr.js';
import { createHarness } from '../../src/agent/harness.js';
import { loadLibrary, tokeniseLibrary } from '../../src/agent/library.js';
import { selectionReasoner } from '../../src/agent/reasoning/selection.js';
import { loadTokenizer } from '../../src/agent/tokenizer.js';
import type { CallRecord } from '../../src/engines/sglang/calls.js';
import { createSglangEngine } from '../../src/engines/sglang/engine.js';
import { createImageEncoder } from '../../src/engines/sglang/images.js';
import { createBreaker } from '../../src/evaluation/breaker.js';
import type { Episode } from '../../src/evaluation/records.js';
import { runQuestions } from '../../src/evaluation/run.js';
import { describeDistribution } from '../../src/evaluation/statistics.js';
import { exactJudge } from '../../src/judges/exact.js';
import { imageTokenCount } from '../../src/media/geometry.js';
import { loadImage } from '../../src/media/image.js';
import type { Benchmark, Engine, Image } from '../../src/types.js';
import { type BareRequests, bareThroughput } from './bare-client.js';

const MODEL = 'benchmarks/micro/model';
const TURNS = 4;
const IN_FLIGHT = 64;
const ACTION = '<tool_call>{"name": "text_search_tool", "arguments": {"query": "city of somebody"}}</tool_call><|im_end|>';
const tokenizer = await loadTokenizer(MODEL);
const sampling = {
  maxNewTokens: 64,
  temperature: 0,
  topP: 1,
  topK: 0,
  seed: 0,
  stopIds: [tokenizer.idOf('<|im_end|>')],
  bannedIds: [],
};
const geometry = { patchSize: 16, mergeSize: 2, minPixels: 16384, maxPixels: 16384 };

const { values } = parseArgs({
  options: {
    questions: { type: 'string', default: '128' },
    history: { type: 'string', default: '6000' },
    images: { type: 'string', default: '2' },
    delay: { type: 'string', default: '50' },
  },
});
const [questions, history, images, delay] = [values.questions, values.history, values.images, values.delay].map(Number) as [
  number,
  number,
  number,
  number,
];

await overhead();
await throughput();

async function overhead(): Promise<void> {
  const table = new Table({
    head: ['in flight', 'turns', 'harness p50 ms', 'p95 ms', 'engine client p50 ms', 'floor ms'],
    colAligns: Array(6).fill('right'),
    style: { head: [], border: [] },
  });
  const probe = await tokeniseFloor();
  for (const concurrency of [1, IN_FLIGHT]) {
    const setting = { delayMs: 0, concurrency, history, images };
    await run({ ...setting, count: concurrency }); // a wave for the compiler
    const { episodes } = await run({ ...setting, count: concurrency === 1 ? Math.ceil(questions / 4) : 5 * questions });
    const turns = episodes.flatMap((episode) => episode.turns);
    const harness = describeDistribution(turns.map(({ timingMs }) => timingMs.orchestration));
    const engine = describeDistribution(
      turns.map(({ timingMs: { prefill, reasoning, action } }) => prefill + reasoning + action),
    );
    table.push([concurrency, turns.length, fixed(harness.p50), fixed(harness.p95), fixed(engine.p50), probe.toFixed(2)]);
  }
  console.log(
    `Harness per turn outside engine and tools; history of ${history} tokens, ${images} pictures of ${Math.round((await picture()).bytes.length / 1000)} kB, a server that answers at once.`,
  );
  console.log('Floor: tokenising the observation and decoding the action, which no harness can leave out.');
  console.log(`${table.toString()}\n`);
}

async function throughput(): Promise<void> {
  const table = new Table({
    head: [
      'history',
      'pictures',
      'sent as',
      'turns/s',
      'ideal',
      'of ideal',
      'bare client',
      'of bare',
      'calls/turn',
      'server ms/call',
      'CPU ms/turn',
    ],
    colAligns: ['right', 'right', 'left', ...Array(8).fill('right')],
    style: { head: [], border: [] },
  });
  const rows = [
    { history: 300, images: 1, transport: 'data' },
    { history, images, transport: 'path' },
    { history, images, transport: 'data' },
  ] as const;
  for (const row of rows) {
    const setting = { ...row, delayMs: delay, concurrency: IN_FLIGHT };
    await run({ ...setting, count: IN_FLIGHT });
    const { episodes, seconds, cpuSeconds, calls, bare } = await run({ ...setting, count: 10 * questions, measureBare: true });
    const turns = episodes.reduce((sum, episode) => sum + episode.turns.length, 0);
    const ideal = IN_FLIGHT / (((calls.length / turns) * delay) / 1000);
    table.push([
      row.history,
      row.images,
      row.transport,
      (turns / seconds).toFixed(1),
      ideal.toFixed(1),
      `${((100 * turns) / seconds / ideal).toFixed(1)}%`,
      bare.toFixed(1),
      `${((100 * turns) / seconds / bare).toFixed(1)}%`,
      (calls.length / turns).toFixed(2),
      describeDistribution(calls.map(({ serverMs }) => serverMs as number)).mean?.toFixed(1),
      ((1000 * cpuSeconds) / turns).toFixed(2),
    ]);
  }
  console.log(
    `Throughput with ${IN_FLIGHT} in flight against a server with ${delay} ms per call; ideal = in flight / (calls per turn x ${delay} ms).`,
  );
  console.log('Bare client: turns/s of the same requests from a client that only posts ready bytes and parses the answers.');
  console.log(table.toString());
}

interface Run {
  readonly delayMs: number;
  readonly concurrency: number;
  readonly history: number;
  readonly images: number;
  readonly count: number;
  readonly transport?: 'data' | 'path';
  readonly measureBare?: boolean;
}

interface Outcome {
  readonly episodes: readonly Episode[];
  /** From the first question's start to the last one's end. */
  readonly seconds: number;
  readonly cpuSeconds: number;
  readonly calls: readonly CallRecord[];
  /** Turns per second of a client that does nothing but send and parse, against the same server; 0 where not measured. */
  readonly bare: number;
}

async function run({
  delayMs,
  concurrency,
  history: length,
  images: pictures,
  count,
  transport = 'data',
  measureBare,
}: Run): Promise<Outcome> {
  const image = await picture();
  const server = startServer(delayMs, imageTokenCount(image.width, image.height, geometry));
  const folder = await mkdtemp(join(tmpdir(), 'ssr-bench-'));
  const calls: CallRecord[] = [];
  const url = await server.url;
  const imageTransport = transport === 'data' ? ({ kind: 'data' } as const) : ({ kind: 'path', folder } as const);
  const engine = await createSglangEngine({
    urls: [url],
    modelFolder: MODEL,
    isolationKey: 'bench',
    requestLimit: 512,
    imageTransport,
    onCall: (call) => calls.push(call),
  });
  try {
    const benchmark = shortQuestions(count, Array(pictures).fill(image));
    const agent = await createAgent(engine, length);
    const episodes: Episode[] = [];
    const [started, before] = [performance.now(), process.cpuUsage()];
    const options = {
      agent,
      benchmark,
      entries: benchmark.entries,
      judge: exactJudge(),
      clock: () => performance.now(),
      seed: 1,
      concurrency,
    };
    for await (const { episode } of runQuestions({
      ...options,
      breaker: createBreaker({ unavailableInARow: 3, maxErrorRate: null }),
    })) {
      if (episode.status !== 'turn-limit') throw new Error(`${episode.status}: ${episode.reason}`);
      episodes.push(episode);
    }
    const [{ user, system }, seconds] = [process.cpuUsage(before), (performance.now() - started) / 1000];
    const turns = episodes.reduce((sum, episode) => sum + episode.turns.length, 0);
    const encoded = await createImageEncoder(imageTransport, 1e9).encode(Array(pictures).fill(image));
    const requests = bareRequests(url, length, encoded, imageTokenCount(image.width, image.height, geometry));
    const bare = measureBare ? await bareThroughput(requests, concurrency, turns) : 0;
    return { episodes, calls, seconds, cpuSeconds: (user + system) / 1e6, bare };
  } finally {
    await engine.close();
    await rm(folder, { recursive: true });
    server.stop();
  }
}

function bareRequests(url: string, length: number, images: readonly Uint8Array[], tokensPerImage: number): BareRequests {
  const pad = tokenizer.idOf('<|image_pad|>');
  const history = [...Array<number>(length).fill(tokenizer.encode(' city')[0] as number), ...images.flatMap(() => [pad, 1])];
  const candidates = Array.from({ length: 6 }, () => Array<number>(22).fill(history[0] as number));
  return { url, history, candidates, images, imagePositions: images.length * tokensPerImage, sampling };
}

/** The system prompt makes the history long: like the history itself it is tokenised once. */
async function createAgent(engine: Engine, length: number): Promise<Agent> {
  const dialect = createSsrDialect(Array(length).fill(' city').join(''), tokenizer.addedTokens);
  const candidates = tokeniseLibrary(await loadLibrary('configs/libraries/default.json'), dialect, tokenizer);
  const results = [{ text: 'Somebody city: Oslo.' }, { text: 'Somebody flower: rose.' }];
  return {
    engine,
    info: await engine.describe(),
    tokenizer,
    dialect,
    systemIds: tokenizer.encode(dialect.systemTurn()),
    reasoner: selectionReasoner(engine, candidates, { alpha: 1, tau: 0 }),
    harness: createHarness(dialect, tokenizer, { textSearch: { name: 'memory', search: async () => results } }),
    maxTurns: TURNS,
    sampling,
  };
}

function shortQuestions(count: number, pictures: readonly Image[]): Benchmark {
  const entries = Array.from({ length: count }, (_, i) => ({ id: `q${i}`, type: 'short' }));
  return {
    name: 'bench',
    split: 'all',
    sha256: '',
    entries,
    load: async (id) => ({ id, type: 'short', text: 'Which city is it?', images: pictures, answers: ['Oslo'] }),
  };
}

async function picture(): Promise<Image> {
  const noise = {
    create: {
      width: 384,
      height: 384,
      channels: 3 as const,
      background: 'grey',
      noise: { type: 'gaussian' as const, mean: 128, sigma: 40 },
    },
  };
  return loadImage(await sharp(noise).blur(12).png({ compressionLevel: 9 }).toBuffer(), 'bench');
}

function startServer(delayMs: number, tokensPerImage: number): { url: Promise<string>; stop: () => void } {
  const script = join(dirname(fileURLToPath(import.meta.url)), 'instant-server.ts');
  const ids = tokenizer.encode(ACTION).join(',');
  const child = execa(
    'node',
    ['--import', 'tsx', script, String(delayMs), String(tokenizer.idOf('<|image_pad|>')), String(tokensPerImage), ids],
    {
      reject: false,
    },
  );
  const url = new Promise<string>((resolve) => child.stdout.once('data', (line: Buffer) => resolve(line.toString().trim())));
  return { url, stop: () => void child.kill() };
}

/** Median milliseconds of the text work that each turn needs whatever the harness. */
async function tokeniseFloor(): Promise<number> {
  const dialect = createSsrDialect('', tokenizer.addedTokens);
  const results = [{ text: 'Somebody city: Oslo.' }, { text: 'Somebody flower: rose.' }];
  const ids = tokenizer.encode(ACTION);
  const times = Array.from({ length: 200 }, () => {
    const started = performance.now();
    tokenizer.encode(dialect.observation({ kind: 'results', results }, 1, true).text);
    tokenizer.decode(ids);
    return performance.now() - started;
  });
  return describeDistribution(times).p50 as number;
}

function fixed(value: number | null): string {
  return value === null ? '–' : value.toFixed(2);
}
