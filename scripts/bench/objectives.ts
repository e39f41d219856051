// The objectives table on the micro world: SFT, GRPO, GSPO and SAPO, with selected and with written reasoning, over several seeds.
// Each seed is a model of its own from the first weight on. Everything is resumed where it stopped, so parts may run side by side.
//   npx tsx scripts/bench/objectives.ts [--seeds 1,2,3] [--reasoning ssr,freeform] [--objectives sft,grpo,gspo,sapo] [--table]
import { access, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { execa } from 'execa';
import { markdownTable } from '../../src/reports/compare-formats.js';

const PYTHON = 'scripts/trainer/.venv/bin/python';
const OUT = 'results/objectives';
/** Short on purpose, so that the starts leave room; the published recipe has 1200. */
const SFT_STEPS = 300;
const SPLITS = ['plain', 'hard'] as const;
const QUESTIONS = 200;
const PROFILED = 100;
/** Two-sided 95% points of Student's t for 1, 2, … degrees of freedom. */
const T95 = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262];

const REASONINGS = ['freeform', 'ssr'] as const;
const OBJECTIVES = ['sft', 'grpo', 'gspo', 'sapo'] as const;
type Reasoning = (typeof REASONINGS)[number];
type Objective = (typeof OBJECTIVES)[number];

/** What `ssr eval` calls them. */
const FLAGS = { ssr: 'selection', freeform: 'freeform' } as const;

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '1,2,3' },
    reasoning: { type: 'string', default: REASONINGS.join(',') },
    objectives: { type: 'string', default: OBJECTIVES.join(',') },
    table: { type: 'boolean', default: false },
  },
});
const seeds = values.seeds.split(',').map(Number);
const reasonings = REASONINGS.filter((name) => values.reasoning.split(',').includes(name));
const objectives = OBJECTIVES.filter((name) => values.objectives.split(',').includes(name));

await mkdir(OUT, { recursive: true });
if (values.table) await printTable();
else {
  for (const seed of seeds) {
    for (const reasoning of reasonings) {
      for (const objective of objectives) await measure(objective, reasoning, seed);
    }
  }
}

async function measure(objective: Objective, reasoning: Reasoning, seed: number): Promise<void> {
  const model = await checkpoint(objective, reasoning, seed);
  for (const split of SPLITS) {
    const output = runFolder(objective, reasoning, seed, split);
    const flags = ['--split', split, '--sample', String(QUESTIONS), '--model', model, '--output', output];
    await ssr(['eval', '--benchmark', 'micro', ...flags, '--reasoning', FLAGS[reasoning]]);
    console.log(`${objective} ${reasoning} seed ${seed} ${split}: ${(await success(output)).toFixed(1)}%`);
  }
}

/** The folder of the weights; trains them where they do not exist. */
async function checkpoint(objective: Objective, reasoning: Reasoning, seed: number): Promise<string> {
  const model = await start(reasoning, seed);
  if (objective === 'sft') return model;
  const run = `${objective}-${reasoning}-${seed}`;
  const config = JSON.parse(await readFile('configs/training/micro-objectives.json', 'utf8'));
  const weights = join(OUT, run, `trainer/weights/step-${String(config.steps).padStart(6, '0')}`);
  if (await exists(weights)) return weights;
  const harness = { ...config.harness, reasoning: FLAGS[reasoning] };
  const file = join(OUT, `${run}.json`); // its paths are relative to itself, two folders down like the config's own
  await writeFile(file, `${JSON.stringify({ ...config, model: join('../..', model), run, harness }, null, 2)}\n`);
  await ssr(['train', objective, '--config', file, '--seed', String(seed)]);
  return weights;
}

async function start(reasoning: Reasoning, seed: number): Promise<string> {
  const run = `scripts/trainer/runs/table-seed-${seed}`;
  const model = join(run, reasoning === 'ssr' ? 'model' : 'model-freeform');
  const words = ['--seed', String(seed), '--run', run, '--sft-steps', String(SFT_STEPS)];
  const kind = ['--reasoning', reasoning === 'ssr' ? 'selection' : 'freeform'];
  if (!(await exists(model))) await execa(PYTHON, ['-m', 'ssr_trainer.micro.train', ...words, ...kind], { stdio: 'inherit' });
  return model;
}

function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

/** Success of each row over the seeds, and the times of the first seed's models, asked in turn on one quiet machine. */
async function printTable(): Promise<void> {
  const profile = await profileArms();
  const rows: string[][] = [];
  for (const objective of objectives) {
    for (const reasoning of reasonings) {
      const cells = SPLITS.map(async (split) => {
        const rates = await Promise.all(seeds.map((seed) => success(runFolder(objective, reasoning, seed, split))));
        return `${interval(rates)} (${rates.map((rate) => rate.toFixed(1)).join(' · ')})`;
      });
      rows.push([
        objective.toUpperCase(),
        reasoning,
        ...(await Promise.all(cells)),
        ...(profile.get(`${objective}-${reasoning}`) ?? []),
      ]);
    }
  }
  const measured = ['reasoning ms/turn', 'model ms/question', 'tokens/s'];
  const columns = ['objective', 'reasoning', ...SPLITS.map((split) => `${split} %`), ...measured];
  console.log(markdownTable({ title: `Objectives, mean of ${seeds.length} seeds [95% t interval] (each seed)`, columns, rows }));
}

async function profileArms(): Promise<Map<string, string[]>> {
  const seed = seeds[0] as number;
  const names = objectives.flatMap((objective) => reasonings.map((reasoning) => ({ objective, reasoning })));
  const arms = await Promise.all(
    names.map(async ({ objective, reasoning }) => {
      const model = await checkpoint(objective, reasoning, seed);
      return `${objective}-${reasoning}=${FLAGS[reasoning]}:model=${model}`;
    }),
  );
  const output = join(OUT, 'profile');
  await ssr(['compare', ...arms, '--benchmark', 'micro', '--sample', String(PROFILED), '--allow', 'model', '--output', output]);
  const { arms: measured }: { arms: Arm[] } = JSON.parse(await readFile(join(output, 'comparison.json'), 'utf8'));
  return new Map(
    measured.map(({ name, reasoningPerTurn, modelPerQuestion, tokensPerSecond }) => [
      name,
      [reasoningPerTurn.mean.toFixed(1), modelPerQuestion.mean.toFixed(1), tokensPerSecond.toFixed(0)],
    ]),
  );
}

/** What is read of an arm in the comparison. */
interface Arm {
  readonly name: string;
  readonly reasoningPerTurn: { readonly mean: number };
  readonly modelPerQuestion: { readonly mean: number };
  readonly tokensPerSecond: number;
}

function interval(values: readonly number[]): string {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  if (values.length < 2) return mean.toFixed(1);
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (values.length - 1);
  const t = T95[values.length - 2];
  if (t === undefined) throw new Error(`expected at most ${T95.length + 1} seeds, found ${values.length}`);
  const half = t * Math.sqrt(variance / values.length);
  return `${mean.toFixed(1)} [${Math.max(0, mean - half).toFixed(1)}, ${Math.min(100, mean + half).toFixed(1)}]`;
}

function runFolder(objective: Objective, reasoning: Reasoning, seed: number, split: string): string {
  return join(OUT, 'runs', `${objective}-${reasoning}-${seed}-${split}`);
}

async function success(run: string): Promise<number> {
  const summary = JSON.parse(await readFile(join(run, 'summary.json'), 'utf8'));
  return 100 * summary.success.overall.rate;
}

async function ssr(words: readonly string[]): Promise<void> {
  await execa('node', ['bin/ssr.js', ...words], { stdout: 'ignore', stderr: 'inherit' });
}
