// Trains by reinforcement against a real SGLang server on this CPU: rollouts from it, weights into it while it runs, twice: with its
// cache of vision features off, where every step's scores must be the trainer's, and on, where stale features must end the run.
//   npx tsx scripts/sglang-cpu/train.ts [--steps 4] [--questions 4] [--group 4] [--model FOLDER]   (after npm run build, npm run setup:trainer)
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { execa } from 'execa';
import { serve } from '../../src/engines/sglang/serve.js';
import { packageRoot } from '../../src/paths.js';
import { servableCopy } from './model-folder.js';

const { values } = parseArgs({
  options: {
    model: { type: 'string', default: join(packageRoot(), 'benchmarks/micro/model') },
    python: { type: 'string', default: join(packageRoot(), 'scripts/sglang-cpu/.venv/bin/python') },
    port: { type: 'string', default: '30110' },
    steps: { type: 'string', default: '4' },
    questions: { type: 'string', default: '4' },
    group: { type: 'string', default: '4' },
  },
});
/** Of a mean log-prob, in nats; the server computes in float32. */
const ALLOWED_GAP = 1e-3;
/** Large, so that the vision tower moves by more than the check's noise floor in a few steps. */
const RATES = { fresh: 1e-3, stale: 3e-3 } as const;
const STALE = 'the engine serves vision features of older weights';

const folder = await mkdtemp(join(tmpdir(), 'ssr-sglang-train-'));
try {
  const model = await servableCopy(values.model, join(folder, 'model'));
  const fresh = await train(model, 'fresh', '0');
  console.log(`Vision cache off: ${describe(fresh)}`);
  const stale = await train(model, 'stale', '2048');
  const found = stale.exitCode !== 0 && stale.output.includes(STALE);
  console.log(`Vision cache on: ${describe(stale)} Stale features ${found ? 'ended the run.' : 'were NOT found.'}`);
  const passed =
    fresh.exitCode === 0 && fresh.gaps.length === Number(values.steps) && Math.max(...fresh.gaps) < ALLOWED_GAP && found;
  console.log(passed ? '1 passed, 0 failed' : `0 passed, 1 failed\n${fresh.output}\n${stale.output}`);
  process.exitCode = passed ? 0 : 1;
} finally {
  await rm(folder, { recursive: true });
}

interface Training {
  readonly exitCode: number;
  readonly output: string;
  /** Per step, of a selected candidate's mean log-prob: between the server's and the trainer's, nats. */
  readonly gaps: readonly number[];
}

function describe({ exitCode, gaps }: Training): string {
  return `exit code ${exitCode}, ${gaps.length} steps, scores within ${gaps.map((gap) => gap.toExponential(1)).join(', ')} nats.`;
}

async function train(model: string, name: keyof typeof RATES, visionCacheMb: string): Promise<Training> {
  const server = await serve({
    model,
    port: Number(values.port),
    python: values.python,
    device: 'cpu',
    extraArguments: ['--dtype', 'float32', '--log-level', 'warning', '--log-level-http', 'warning'],
    environment: { OMP_NUM_THREADS: '1', SGLANG_VLM_CACHE_SIZE_MB: visionCacheMb },
    readyTimeoutMs: 300_000,
  });
  try {
    const config = join(folder, `${name}.json`);
    await writeFile(config, JSON.stringify(settings(model, join(folder, name), server.url, RATES[name])));
    const run = await execa('node', [join(packageRoot(), 'bin/ssr.js'), 'train', 'grpo', '--config', config], {
      cwd: packageRoot(),
      reject: false,
      all: true,
      timeout: 300_000,
    });
    const gaps = await column(join(folder, name, 'curves.csv'), 'largest_score_gap');
    return { exitCode: run.exitCode ?? 1, output: run.all, gaps };
  } finally {
    await server.stop();
  }
}

function settings(model: string, run: string, engineUrl: string, rate: number): unknown {
  return {
    model,
    run,
    steps: Number(values.steps),
    questions: Number(values.questions),
    group: Number(values.group),
    sources: [{ benchmark: 'micro', split: 'hard' }],
    heldOut: { benchmark: 'micro', split: 'dev', limit: 4, every: Number(values.steps) },
    harness: { engine: 'sglang', engineUrl: [engineUrl], tau: 2, temperature: 1 },
    trainer: { optimiser: { learning_rate: rate, warmup_steps: 0 }, options: { threads: 1 } },
  };
}

/** The numbers of one column; steps that were not trained have none. */
async function column(file: string, name: string): Promise<number[]> {
  const text = await readFile(file, 'utf8').catch(() => ''); // a run that was refused wrote none
  const [head = '', ...rows] = text.trim().split('\n');
  const at = head.split(',').indexOf(name);
  return rows.flatMap((row) => (row.split(',')[at] ? Number(row.split(',')[at]) : []));
}
