// Starts a real SGLang server on this machine's CPU (or uses --url), lets the doctor examine it, and compares every score and
// action on micro questions with the embedded engine. Exits with 1 when a check fails or the engines disagree beyond numerics.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { loadMicro, microToolbox } from '../../benchmarks/micro/index.js';
import { createSsrDialect } from '../../src/agent/dialects/ssr.js';
import { createHarness } from '../../src/agent/harness.js';
import { loadLibrary, tokeniseLibrary } from '../../src/agent/library.js';
import { selectionReasoner } from '../../src/agent/reasoning/selection.js';
import { loadTokenizer } from '../../src/agent/tokenizer.js';
import { readPrompt } from '../../src/cli/wire.js';
import { createEmbeddedEngine } from '../../src/engines/embedded/engine.js';
import { diagnose } from '../../src/engines/sglang/doctor.js';
import { createSglangEngine } from '../../src/engines/sglang/engine.js';
import { serve } from '../../src/engines/sglang/serve.js';
import { packageRoot } from '../../src/paths.js';
import type { Engine } from '../../src/types.js';
import { type ComparedTurn, compareQuestion } from './compare.js';
import { servableCopy } from './model-folder.js';

/** Of one candidate token, in nats. In float32 both agree far better; in bfloat16 a logit of 16 is a multiple of 0.125. */
const ALLOWED_PER_TOKEN = 0.05;

const { values } = parseArgs({
  options: {
    url: { type: 'string' },
    model: { type: 'string', default: join(packageRoot(), 'benchmarks/micro/model') },
    python: { type: 'string', default: join(packageRoot(), 'scripts/sglang-cpu/.venv/bin/python') },
    port: { type: 'string', default: '30107' },
    questions: { type: 'string', default: '40' },
    split: { type: 'string', default: 'dev' },
    dtype: { type: 'string', default: 'float32' },
    log: { type: 'boolean', default: false },
  },
});

const folder = await mkdtemp(join(tmpdir(), 'ssr-sglang-cpu-'));
const model = await servableCopy(values.model, join(folder, 'model'));
const started = performance.now();
const server = values.url
  ? null
  : await serve({
      model,
      port: Number(values.port),
      python: values.python,
      device: 'cpu',
      extraArguments: ['--dtype', values.dtype],
      readyTimeoutMs: 300_000,
      ...(values.log && { onLine: (line) => console.error(line) }),
    });
const url = values.url ?? (server?.url as string);
console.log(`server ready at ${url} after ${seconds(performance.now() - started)}`);
let failed = false;
try {
  failed = !(await examine(url)) || !(await compare(url));
} finally {
  await server?.stop();
  await rm(folder, { recursive: true });
}
console.log(failed ? '0 passed, 1 failed' : '1 passed, 0 failed');
process.exitCode = failed ? 1 : 0;

async function examine(address: string): Promise<boolean> {
  const tokenizer = await loadTokenizer(model);
  let sound = true;
  for await (const check of diagnose({
    url: address,
    tokenizer,
    modelFolder: model,
    isolationKey: `doctor-${Date.now()}`,
    flush: true,
  })) {
    console.log(`${check.status.padEnd(4)}  ${check.name}: ${check.detail}${check.remedy ? ` → ${check.remedy}` : ''}`);
    sound &&= check.status !== 'fail';
  }
  return sound;
}

async function compare(address: string): Promise<boolean> {
  const tokenizer = await loadTokenizer(model);
  const library = await loadLibrary(join(packageRoot(), 'configs/libraries/default.json'));
  const dialect = createSsrDialect(
    await readPrompt(join(packageRoot(), 'configs/prompts/micro.txt'), library),
    tokenizer.addedTokens,
  );
  const candidates = tokeniseLibrary(library, dialect, tokenizer);
  const benchmark = await loadMicro(values.split);
  const embedded = await createEmbeddedEngine(model, { workers: 1 });
  const remote: Engine = await createSglangEngine({ urls: [address], modelFolder: model, isolationKey: `compare-${Date.now()}` });
  const agent = {
    engine: embedded,
    info: await embedded.describe(),
    tokenizer,
    dialect,
    systemIds: tokenizer.encode(dialect.systemTurn()),
    reasoner: selectionReasoner(embedded, candidates, { alpha: 1, tau: 0 }),
    harness: createHarness(dialect, tokenizer, await microToolbox(values.split, { textResults: 2, imageResults: 2 })),
    maxTurns: 8,
    sampling: {
      maxNewTokens: 48,
      temperature: 0,
      topP: 1,
      topK: 0,
      seed: 0,
      stopIds: [tokenizer.idOf(dialect.stopToken)],
      bannedIds: dialect.visionTokens.map((token) => tokenizer.idOf(token)),
    },
  };
  try {
    const turns: ComparedTurn[] = [];
    // Every k-th question, so that all types are met.
    const step = Math.max(1, Math.floor(benchmark.entries.length / Number(values.questions)));
    const chosen = benchmark.entries.filter((_, i) => i % step === 0).slice(0, Number(values.questions));
    for (const { id } of chosen) turns.push(...(await compareQuestion(id, agent, remote, candidates, benchmark)));
    return report(chosen.length, turns);
  } finally {
    await Promise.all([embedded.close(), remote.close()]);
  }
}

function report(questions: number, turns: readonly ComparedTurn[]): boolean {
  const perToken = Math.max(...turns.map((turn) => turn.perToken));
  const perScore = Math.max(...turns.map((turn) => turn.perScore));
  const flips = turns.filter(({ choice: [ours, theirs] }) => ours !== theirs);
  // Two scores that each moved by the floor can change places when they were twice the floor apart.
  const unexplained = flips.filter(({ margin }) => margin > 2 * perScore);
  const actions = turns.filter(({ sameAction }) => !sameAction);
  console.log(`${turns.length} turns of ${questions} questions, the embedded engine against the server:`);
  console.log(
    `  per token ${perToken.toFixed(5)} nat at most (allowed ${ALLOWED_PER_TOKEN}), per score ${perScore.toFixed(5)} nat`,
  );
  console.log(
    `  choices: ${turns.length - flips.length} equal, ${flips.length} flipped, ${unexplained.length} of them with a margin above the noise`,
  );
  console.log(
    `  actions at temperature 0 behind the same choice: ${turns.length - actions.length} equal, ${actions.length} different`,
  );
  for (const { id, turn, choice, margin, actions: texts, sameAction } of turns) {
    if (choice[0] !== choice[1]) console.log(`  ${id} turn ${turn}: ${choice.join(' / ')}, margin ${margin.toFixed(5)}`);
    if (!sameAction) console.log(`  ${id} turn ${turn}: ${texts.map((text) => JSON.stringify(text)).join(' / ')}`);
  }
  return perToken <= ALLOWED_PER_TOKEN && unexplained.length === 0;
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}
