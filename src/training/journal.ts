// A training run's folder besides the trainer's states: curves.csv, evaluations.jsonl, the best checkpoint. A resumed run first drops
// what it will do again.
import { appendFile, cp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { parseJsonLines } from '../data/json.js';
import { type Rate, wilsonInterval } from '../evaluation/statistics.js';
import { curvesSvg } from './curves.js';
import type { StepRecord } from './loop.js';
import type { Position } from './trainer-process.js';

const evaluationSchema = z.object({ step: z.number().int(), successes: z.number().int(), n: z.number().int() });

export type Evaluation = z.infer<typeof evaluationSchema>;

export class Journal {
  readonly #folder: string;
  readonly #candidates: readonly string[];
  readonly #evaluations: Evaluation[];
  readonly #rewards: { step: number; reward: number }[];
  #hasHeader: boolean;

  private constructor(folder: string, candidates: readonly string[], kept: Kept) {
    this.#folder = folder;
    this.#candidates = candidates;
    this.#evaluations = kept.evaluations;
    this.#rewards = kept.rewards;
    this.#hasHeader = kept.hasHeader;
  }

  /** Continues at `step`: rows of that step and later ones are repeated, evaluations of it are kept. */
  static async open(folder: string, candidates: readonly string[], step: number): Promise<Journal> {
    const curves = await lines(join(folder, 'curves.csv'));
    const [header, ...rows] = curves;
    const keptRows = rows.filter((row) => Number(row.split(',')[0]) < step);
    if (header !== undefined) await replace(join(folder, 'curves.csv'), [header, ...keptRows]);
    const path = join(folder, 'evaluations.jsonl');
    const all = parseJsonLines((await lines(path)).join('\n'), evaluationSchema, path);
    const evaluations = all.filter((evaluation) => evaluation.step <= step);
    await replace(
      path,
      evaluations.map((evaluation) => JSON.stringify(evaluation)),
    );
    const column = header?.split(',').indexOf('reward') ?? -1;
    const rewards = keptRows.flatMap((row) => {
      const cells = row.split(',');
      return cells[column] ? [{ step: Number(cells[0]), reward: Number(cells[column]) }] : [];
    });
    return new Journal(folder, candidates, { evaluations, rewards, hasHeader: header !== undefined });
  }

  get evaluations(): readonly Evaluation[] {
    return this.#evaluations;
  }

  /** Held-out success of the best weights so far. */
  get best(): number {
    return Math.max(0, ...this.#evaluations.map(({ successes, n }) => successes / n));
  }

  async noteEvaluation(step: number, { successes, n }: Rate): Promise<void> {
    this.#evaluations.push({ step, successes, n });
    await appendFile(join(this.#folder, 'evaluations.jsonl'), `${JSON.stringify({ step, successes, n })}\n`);
  }

  async note(record: StepRecord): Promise<void> {
    const cells = rowOf(record, this.#candidates);
    const header = this.#hasHeader ? '' : `${Object.keys(cells).join(',')}\n`;
    this.#hasHeader = true;
    const values = Object.values(cells).map((value) => (value === null ? '' : String(Number(value.toPrecision(6)))));
    await appendFile(join(this.#folder, 'curves.csv'), `${header}${values.join(',')}\n`);
    const reward = record.rollout?.reward;
    if (typeof reward === 'number') this.#rewards.push({ step: record.step, reward });
    await writeFile(join(this.#folder, 'curves.svg'), curvesSvg(this.#evaluations, this.#rewards));
  }

  /** Copies the weights beside and renames them. */
  async keepBest({ step, weights }: Position, { successes, n }: Rate): Promise<void> {
    const best = join(this.#folder, 'best');
    await rm(`${best}.part`, { recursive: true, force: true });
    await cp(weights, `${best}.part`, { recursive: true });
    const interval = wilsonInterval(successes, n);
    await writeFile(join(`${best}.part`, 'success.json'), `${JSON.stringify({ step, successes, n, interval }, null, 2)}\n`);
    await rm(best, { recursive: true, force: true });
    await rename(`${best}.part`, best);
  }
}

interface Kept {
  readonly evaluations: Evaluation[];
  readonly rewards: { step: number; reward: number }[];
  readonly hasHeader: boolean;
}

/** Metrics of train_rl.py, in this order; a step that trained nothing has none. */
const METRICS = [
  'loss',
  'gradient_norm',
  'clip_fraction',
  'kl',
  'action_entropy',
  'largest_ratio_gap',
  'largest_score_gap',
  'score_alarms',
  'groups_without_spread',
  'turns_trained',
  'tokens_trained',
] as const;
const PHASES = ['load', 'evaluate', 'rollout', 'store', 'update', 'save'] as const;

function rowOf(
  { step, heldOut, rollout, metrics, secondsPerPhase }: StepRecord,
  candidates: readonly string[],
): Record<string, number | null> {
  return {
    step,
    held_out_success: heldOut?.rate ?? null,
    held_out_n: heldOut?.n ?? null,
    reward: rollout?.reward ?? null,
    success: rollout?.success ?? null,
    masked: rollout?.masked ?? null,
    turns: rollout?.turns ?? null,
    action_tokens: rollout?.actionTokens ?? null,
    selection_entropy: rollout?.selectionEntropy ?? null,
    ...Object.fromEntries(candidates.map((id, i) => [`selected/${id}`, rollout?.selections[i] ?? null])),
    ...Object.fromEntries(METRICS.map((name) => [name, metrics[name] ?? null])),
    ...Object.fromEntries(PHASES.map((name) => [`seconds/${name}`, secondsPerPhase[name] ?? null])),
  };
}

async function lines(path: string): Promise<string[]> {
  const source = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '';
    throw error;
  });
  return source.split('\n').filter((line) => line !== '');
}

async function replace(path: string, kept: readonly string[]): Promise<void> {
  await writeFile(`${path}.part`, kept.map((line) => `${line}\n`).join(''));
  await rename(`${path}.part`, path);
}
