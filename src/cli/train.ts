// Training by reinforcement from a configuration to curves and the best checkpoint.
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { UsageError } from '../errors.js';
import { createBreaker } from '../evaluation/breaker.js';
import { lockFolder } from '../evaluation/lock.js';
import { runQuestions } from '../evaluation/run.js';
import { type Rate, wilsonInterval } from '../evaluation/statistics.js';
import { Journal } from '../training/journal.js';
import { conduct, type HandOver, type LoopEnd, type LoopParts, type StepRecord } from '../training/loop.js';
import { writeMinibatch } from '../training/minibatch.js';
import { TrainerProcess } from '../training/trainer-process.js';
import type { Engine } from '../types.js';
import { createHandOver } from './hand-over.js';
import type { Environment } from './judge.js';
import type { Settings } from './options.js';
import { rollOutFrom, streamOf, trainedReasoning } from './rollout.js';
import { completeSettings } from './settings.js';
import { rewardsOf, type TrainConfig, trainerCommand, trainerConfig } from './train-config.js';
import { requireSameTraining } from './train-identity.js';
import { assemble, type Parts, type Wiring, wireParts } from './wire.js';

export interface TrainRequest {
  readonly config: TrainConfig;
  readonly objective: 'grpo' | 'gspo' | 'sapo';
  readonly environment: Environment;
  readonly say: (line: string) => void;
  readonly signal: AbortSignal;
}

interface Source {
  readonly settings: Settings;
  readonly parts: Parts;
}

/** Runs or continues; every finished step is on disk. Throws UsageError for bad settings before anything starts. */
export async function train(request: TrainRequest): Promise<LoopEnd> {
  const { config, objective, environment, signal } = request;
  const sources = await Promise.all(config.sources.map((source) => openSource(config, source, environment)));
  const heldOut = await openSource(config, config.heldOut, environment);
  const first = sources[0] as Source;
  if (first.settings.engine === 'scripted') throw new UsageError('the scripted engine has no weights to train');
  await mkdir(config.run, { recursive: true });
  const unlock = await lockFolder(config.run);
  const handOver = createHandOver(first.settings, first.parts, environment);
  try {
    await requireSameTraining(config, objective, first.settings);
    const settingsFile = join(config.run, 'trainer.json');
    await writeFile(
      settingsFile,
      `${JSON.stringify(trainerConfig(config, objective, trainedReasoning(first.settings)), null, 2)}\n`,
    );
    const [command = '', ...words] = trainerCommand(config);
    const trainer = await TrainerProcess.launch({
      command,
      arguments: [...words, '-m', 'ssr_trainer.train_rl', settingsFile],
      environment: { OMP_NUM_THREADS: environment.OMP_NUM_THREADS ?? '1', TQDM_DISABLE: '1' },
      signal,
    });
    try {
      return await trainWith(trainer, request, sources, heldOut, handOver);
    } finally {
      await trainer.close();
    }
  } finally {
    await handOver.close();
    await unlock();
  }
}

async function trainWith(
  trainer: TrainerProcess,
  request: TrainRequest,
  sources: readonly Source[],
  heldOut: Source,
  handOver: HandOver,
): Promise<LoopEnd> {
  const { config, say } = request;
  const { step } = trainer.start;
  if (step > 0) say(`Continuing after step ${step}.`);
  const candidates = (sources[0] as Source).parts.candidates.map(({ id }) => id);
  const journal = await Journal.open(config.run, candidates, step);
  const parts = loopParts(request, sources, heldOut, journal, trainer, handOver);
  return await drive(conduct(parts, loopSettings(config), { rate: journal.best }), journal, say);
}

function loopSettings({ steps, heldOut, collapse }: TrainConfig): { steps: number; evaluateEvery: number; collapse: number } {
  return { steps, evaluateEvery: heldOut.every, collapse };
}

async function openSource(
  config: TrainConfig,
  named: TrainConfig['sources'][number] | TrainConfig['heldOut'],
  environment: Environment,
): Promise<Source> {
  const { benchmark, split, data } = named;
  const settings = await completeSettings({
    tau: 1,
    temperature: 1,
    ...(config.harness as Partial<Settings>),
    benchmark,
    ...(split !== undefined && { split }),
    ...(data !== undefined && { data }),
    model: config.model,
    seed: config.seed,
  });
  return { settings, parts: await wireParts(settings, environment) };
}

function loopParts(
  { config, signal }: TrainRequest,
  sources: readonly Source[],
  heldOut: Source,
  journal: Journal,
  trainer: LoopParts['trainer'],
  handOver: LoopParts['handOver'],
): LoopParts {
  const { settings } = sources[0] as Source;
  const mixed = sources.map(({ parts }, i) => {
    const { weight = 1, types } = config.sources[i] ?? {};
    return { wiring: parts, weight, types };
  });
  const draw = streamOf(mixed, config.questions, config.seed);
  const folder = join(config.run, 'minibatch');
  return {
    trainer,
    handOver,
    clock: () => performance.now(),
    async rollOut(engine, step) {
      const wirings = await Promise.all(sources.map((source) => assemble(source.parts, engine, source.settings)));
      return rollOutFrom(wirings, settings, {
        questions: draw(step),
        step,
        group: config.group,
        rewards: rewardsOf(config),
        signal,
      });
    },
    async store(rolledOut) {
      await rm(folder, { recursive: true, force: true });
      await writeMinibatch(folder, rolledOut, rolledOut.images);
      return folder;
    },
    async evaluate(engine, step) {
      const known = journal.evaluations.find((evaluation) => evaluation.step === step);
      if (known) return rateOf(known.successes, known.n);
      const rate = await heldOutSuccess(engine, heldOut, config.heldOut.limit, signal);
      await journal.noteEvaluation(step, rate);
      return rate;
    },
    keepBest: (position, success) => journal.keepBest(position, success),
  };
}

/** As `ssr eval` would: the best candidate, greedy actions, always the same questions. */
async function heldOutSuccess(
  engine: Engine,
  { settings, parts }: Source,
  limit: number | undefined,
  signal: AbortSignal,
): Promise<Rate> {
  const wiring: Wiring = await assemble(parts, engine, { ...settings, tau: 0, temperature: 0 });
  const concurrency = settings.concurrency ?? 2 * availableParallelism();
  const breaker = createBreaker({ unavailableInARow: Math.max(3, concurrency), maxErrorRate: null });
  let [successes, n] = [0, 0];
  for await (const { episode } of runQuestions({
    ...wiring,
    entries: wiring.benchmark.entries.slice(0, limit),
    seed: settings.seed,
    concurrency,
    breaker,
    clock: () => performance.now(),
    signal,
  })) {
    if (episode.correct === null) continue;
    n++;
    if (episode.correct) successes++;
  }
  return rateOf(successes, n);
}

function rateOf(successes: number, n: number): Rate {
  if (n === 0) return { successes, n, rate: null, interval: null };
  return { successes, n, rate: successes / n, interval: wilsonInterval(successes, n) };
}

async function drive(loop: AsyncGenerator<StepRecord, LoopEnd>, journal: Journal, say: (line: string) => void): Promise<LoopEnd> {
  for (;;) {
    const next = await loop.next();
    if (next.done) return next.value;
    await journal.note(next.value);
    say(describeStep(next.value));
  }
}

function describeStep({ step, heldOut, rollout, metrics, secondsPerPhase }: StepRecord): string {
  const number = (value: number | null | undefined, digits = 3): string =>
    typeof value === 'number' ? value.toFixed(digits) : '–';
  const share = (value: number): string => (100 * value).toFixed(1);
  const parts = [`step ${step}`];
  if (heldOut?.interval) {
    const { low, high } = heldOut.interval;
    parts.push(`held out ${share(heldOut.rate ?? 0)}% [${share(low)}, ${share(high)}] of ${heldOut.n}`);
  }
  if (rollout) {
    parts.push(
      `reward ${number(rollout.reward)}`,
      `success ${number(rollout.success)}`,
      `entropy ${number(rollout.selectionEntropy)}`,
    );
    parts.push(`gradient ${number(metrics.gradient_norm)}`, `clipped ${number(metrics.clip_fraction)}`);
    if ((metrics.kl ?? 0) !== 0) parts.push(`KL ${number(metrics.kl, 4)}`);
  }
  if ((metrics.score_alarms ?? 0) > 0) {
    parts.push(
      `ALARM: ${metrics.score_alarms} scores differ from the engine's, by up to ${number(metrics.largest_score_gap)} nats`,
    );
  }
  const seconds = Object.entries(secondsPerPhase).filter(([, value]) => value >= 0.05);
  return `${parts.join(' · ')} · ${seconds.map(([phase, value]) => `${phase} ${value.toFixed(1)} s`).join(', ')}`;
}
