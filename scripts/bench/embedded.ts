// Reasoning by selection beside its alternatives on the embedded engine, in one run: six candidates packed in one pass, the same six
// in a pass each, and decoding as many tokens as written reasoning takes. The history is cached before each of them.
// Usage: npx tsx scripts/bench/embedded.ts [--model DIR] [--histories 100,300,1000] [--repeats 9] [--decode 110]
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { loadLibrary } from '../../src/agent/library.js';
import { loadTokenizer } from '../../src/agent/tokenizer.js';
import { type ModelConfig, readModelConfig } from '../../src/engines/embedded/checkpoint-config.js';
import { createEmbeddedEngine } from '../../src/engines/embedded/engine.js';
import { loadKernels } from '../../src/engines/embedded/kernels.js';
import { packageRoot } from '../../src/paths.js';
import { createRandom } from '../../src/random.js';
import type { Engine, Sampling, TokenContext } from '../../src/types.js';

interface Method {
  readonly name: string;
  /** Resolves to the tokens computed. */
  readonly run: () => Promise<number>;
  /** Floating-point operations of the model's matrices and attention, the floor of this method's work. */
  readonly operations: number;
}

const { values: options } = parseArgs({
  options: {
    model: { type: 'string', default: join(packageRoot(), 'benchmarks/micro/model') },
    library: { type: 'string', default: join(packageRoot(), 'configs/libraries/default.json') },
    histories: { type: 'string', default: '100,300,1000' },
    repeats: { type: 'string', default: '9' },
    decode: { type: 'string', default: '110' },
  },
});

const config = await readModelConfig(options.model);
const candidates = await candidateIds();
const peak = await measurePeak();
const engine = await createEmbeddedEngine(options.model, { workers: 1 });
print(`${candidates.length} candidates of ${candidates.map(({ length }) => length).join(', ')} tokens; one worker thread;`);
print(
  `a plain 256 x 1024 x 1024 matrix product on this machine reaches ${(peak / 1e9).toFixed(1)} GFLOP/s; medians of ${options.repeats} runs\n`,
);
printRow('history', 'method', 'tokens', 'ms', 'ms/token', 'GFLOP/s', 'of peak', 'vs packed');
for (const length of options.histories.split(',').map(Number)) await compare(length);
await engine.close();

async function compare(historyLength: number): Promise<void> {
  const context = history(historyLength);
  await engine.prefill(context);
  const methods = methodsFor(engine, context, Number(options.decode));
  const timesMs = methods.map(() => [] as number[]);
  const tokens = methods.map(() => 0);
  for (let repeat = -1; repeat < Number(options.repeats); repeat++) {
    for (const [index, method] of methods.entries()) {
      await engine.prefill(context);
      const start = performance.now();
      tokens[index] = await method.run();
      // The first round warms the compiled code and does not count.
      if (repeat >= 0) timesMs[index]?.push(performance.now() - start);
    }
  }
  const medians = timesMs.map(median);
  methods.forEach(({ name, operations }, index) => {
    const ms = medians[index] ?? Number.NaN;
    const count = tokens[index] ?? Number.NaN;
    const speed = operations / ms / 1e6;
    printRow(
      `${historyLength}`,
      name,
      `${count}`,
      ms.toFixed(1),
      (ms / count).toFixed(3),
      speed.toFixed(1),
      `${((100 * speed * 1e9) / peak).toFixed(0)}%`,
      `${(ms / (medians[0] ?? Number.NaN)).toFixed(2)}x`,
    );
  });
  await engine.release(context.trajectory);
}

function methodsFor(over: Engine, context: TokenContext, decodeTokens: number): Method[] {
  const sampling: Sampling = {
    maxNewTokens: decodeTokens,
    temperature: 0,
    topP: 1,
    topK: 0,
    seed: 0,
    stopIds: [],
    bannedIds: [],
  };
  const scoring = candidates.reduce((sum, ids) => sum + continuationOperations(context.length, ids.length, ids.length - 1), 0);
  const head = headOperations();
  return [
    {
      name: 'six packed in one pass',
      run: async () => (await over.score(context, candidates)).usage.computedTokens,
      operations: scoring + head,
    },
    {
      name: 'six passes, one each',
      run: async () => {
        let computed = 0;
        for (const ids of candidates) computed += (await over.score(context, [ids])).usage.computedTokens;
        return computed;
      },
      operations: scoring + candidates.length * head,
    },
    {
      name: `decoding ${decodeTokens} tokens`,
      run: async () => (await over.generate(context, sampling)).tokens.length,
      operations: continuationOperations(context.length, decodeTokens - 1, decodeTokens),
    },
  ];
}

/** `count` tokens behind `before` cached positions, and the vocabulary's logits for `logits` of them. */
function continuationOperations(before: number, count: number, logits: number): number {
  const { hiddenSize, feedForwardSize, heads, keyValueHeads, headWidth, layers } = config.text;
  const matrices = hiddenSize * headWidth * (2 * heads + 2 * keyValueHeads) + 3 * hiddenSize * feedForwardSize;
  const visibleKeys = count * before + (count * (count + 1)) / 2;
  const attention = 2 * heads * headWidth * visibleKeys;
  return 2 * layers * (count * matrices + attention) + logits * headOperations();
}

function headOperations(): number {
  return 2 * config.text.hiddenSize * config.text.vocabularySize;
}

async function candidateIds(): Promise<number[][]> {
  const tokenizer = await loadTokenizer(options.model);
  const library = await loadLibrary(options.library);
  return library.entries.map(({ text }) => tokenizer.encode(`<thinking>${text}</thinking>`));
}

/** Random text ids; only their number matters for the time. */
function history(length: number): TokenContext {
  const random = createRandom(length);
  const ids = Array.from({ length }, () => Math.floor(random() * Math.min(1000, vocabulary(config))));
  return { trajectory: `history of ${length}`, ids, images: [], length };
}

function vocabulary({ text, imageTokenId, videoTokenId }: ModelConfig): number {
  return Math.min(text.vocabularySize, imageTokenId, videoTokenId);
}

/** Operations per second of the engine's own matrix kernel on matrices that suit it. */
async function measurePeak(): Promise<number> {
  const { run, memory } = await loadKernels();
  const [rows, depth, columns] = [256, 1024, 1024];
  const [x, weights, y] = [rows * depth, depth * columns, rows * columns].map((size) => memory.allocate(size * 4)) as [
    number,
    number,
    number,
  ];
  memory.floats(x, rows * depth).fill(0.5);
  memory.floats(weights, depth * columns).fill(0.25);
  const timesMs = Array.from({ length: 9 }, () => {
    const start = performance.now();
    run.gemm(x, depth, weights, 0, y, columns, rows, depth, columns / 8, 0);
    return performance.now() - start;
  });
  return (2 * rows * depth * columns) / (Math.min(...timesMs) / 1e3);
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

function printRow(historyLength: string, method: string, ...figures: readonly string[]): void {
  print([historyLength.padStart(7), method.padEnd(24), ...figures.map((figure) => figure.padStart(10))].join('  '));
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
