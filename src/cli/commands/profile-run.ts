// The measurement behind `ssr profile`: warm-up, then the sample once per load, then the sweep, on one engine.
import { performance } from 'node:perf_hooks';
import { planQuestions } from '../../evaluation/plan.js';
import {
  profileCalls,
  profileGenerations,
  type TimedCall,
  type TimedGeneration,
  timedGenerations,
} from '../../evaluation/profile-calls.js';
import { runSweep, type Sweep, type SweepOptions } from '../../evaluation/profile-sweep.js';
import type { Episode } from '../../evaluation/records.js';
import { runQuestions } from '../../evaluation/run.js';
import { type LoadProfile, type ProfileReport, profileLoad, profileMethods } from '../../reports/profile.js';
import type { Benchmark, Image } from '../../types.js';
import { openEngine } from '../engine.js';
import { onInterrupt } from '../interrupt.js';
import { createProgress } from '../progress.js';
import { assemble, type Wiring, wireParts } from '../wire.js';
import type { LiveArm } from './compare-run.js';

export interface ProfileOptions {
  readonly samples: number;
  readonly warmUp: number;
  readonly loads: readonly number[];
  /** Measurements per point; null for no sweep. */
  readonly sweepRepeats: number | null;
}

const SWEEP: Omit<SweepOptions, 'repeats' | 'seed'> = {
  base: { historyTokens: 1000, candidates: 6, candidateTokens: 33, images: 0 },
  historyTokens: [300, 1000, 3000],
  candidates: [1, 2, 6, 12, 24],
  candidateTokens: [8, 16, 33, 64],
  images: [0, 1, 2, 4],
  writtenTokens: [16, 32, 65, 110],
};

type Entries = Benchmark['entries'];
const clock = (): number => performance.now();

export async function profileArm(
  { name, settings }: LiveArm,
  options: ProfileOptions,
): Promise<{ readonly report: ProfileReport; readonly interrupted: boolean }> {
  let [calls, generations]: [TimedCall[], TimedGeneration[]] = [[], []];
  const parts = await wireParts(settings, process.env);
  const hooks = { onCall: (call: TimedCall) => void calls.push(call) };
  const started = await openEngine({ settings, ...parts, environment: process.env, hooks });
  const engine = timedGenerations(started, clock, (timed) => generations.push(timed));
  const interrupt = onInterrupt((text) => process.stderr.write(`\n${text}\n`));
  try {
    const wiring = await assemble(parts, engine, settings);
    const { benchmark } = wiring;
    const sample = planQuestions(benchmark.entries, { sample: options.samples, seed: settings.seed });
    const ask = (entries: Entries, load: number, onEpisode: (episode: Episode) => void): Promise<number> =>
      askAll(wiring, entries, load, { seed: settings.seed, ...interrupt }, onEpisode);
    const warmUp: Episode[] = [];
    await ask(warmUpOf(benchmark.entries, sample, options.warmUp), 1, (episode) => warmUp.push(episode));
    [calls, generations] = [[], []];
    const [first = 1, ...others] = options.loads;
    const loads = await profileLoads(sample, [first], ask);
    const below = { generations: profileGenerations(generations), calls: profileCalls(calls) };
    loads.push(...(await profileLoads(sample, others, ask)));
    const sweep =
      options.sweepRepeats === null || interrupt.drain.aborted
        ? null
        : await sweepOf(wiring, sample, { ...SWEEP, repeats: options.sweepRepeats, seed: settings.seed }, interrupt.drain);
    return {
      interrupted: interrupt.drain.aborted,
      report: {
        schema: 1,
        arm: name,
        benchmark: `${benchmark.name}-${benchmark.split}`,
        seed: settings.seed,
        sample: sample.map(({ id }) => id),
        warmUp: warmUp.map(({ id, status, timingMs }) => ({ id, status, ms: timingMs.total })),
        ...profileMethods,
        loads,
        ...below,
        sweep,
      },
    };
  } finally {
    interrupt.dispose();
    await Promise.all([engine.close(), parts.tools.close()]);
  }
}

/** Questions outside the sample where there are enough, so that nothing of the sample has been seen before. */
function warmUpOf(entries: Entries, sample: Entries, count: number): Entries {
  const drawn = new Set(sample.map(({ id }) => id));
  const others = entries.filter(({ id }) => !drawn.has(id));
  return (others.length >= count ? others : entries).slice(0, count);
}

async function profileLoads(
  sample: Entries,
  loads: readonly number[],
  ask: (entries: Entries, load: number, onEpisode: (episode: Episode) => void) => Promise<number>,
): Promise<LoadProfile[]> {
  const progress = createProgress(sample.length * loads.length, process.stderr, clock);
  const profiles: LoadProfile[] = [];
  try {
    for (const load of loads) {
      const episodes: Episode[] = [];
      const wallMs = await ask(sample, load, (episode) => {
        // Ids and log-probs are not looked at; without them thousands of questions fit into memory.
        episodes.push({ ...episode, ids: [], turns: episode.turns.map(withoutLogprobs) });
        progress.add(episode);
      });
      profiles.push(profileLoad(load, episodes, sample.length, wallMs));
    }
  } finally {
    progress.stop();
  }
  return profiles;
}

function withoutLogprobs(turn: Episode['turns'][number]): Episode['turns'][number] {
  return { ...turn, action: { ...turn.action, logprobs: [] } };
}

/** Asks all questions and returns the wall time in milliseconds. */
async function askAll(
  { agent, benchmark, judge }: Wiring,
  entries: Entries,
  concurrency: number,
  run: { readonly seed: number; readonly drain: AbortSignal; readonly signal: AbortSignal },
  onEpisode: (episode: Episode) => void,
): Promise<number> {
  const started = clock();
  const outcomes = runQuestions({ agent, benchmark, judge, entries, concurrency, clock, breaker: () => null, ...run });
  for await (const { episode } of outcomes) onEpisode(episode);
  return clock() - started;
}

async function sweepOf(
  { agent, benchmark }: Wiring,
  sample: Entries,
  options: SweepOptions,
  signal: AbortSignal,
): Promise<Sweep> {
  const { engine, info, tokenizer, sampling } = agent;
  const images = await picturesOf(benchmark, sample, Math.max(...options.images));
  const available = { ...options, images: options.images.filter((count) => count <= images.length) };
  return runSweep({ engine, info, tokenizer, sampling, images, clock, imagePad: '<|image_pad|>' }, available, signal);
}

/** Pictures of the sample's own questions, each once. */
async function picturesOf(benchmark: Benchmark, sample: Entries, count: number): Promise<Image[]> {
  const images = new Map<string, Image>();
  for (const { id } of sample) {
    if (images.size >= count) break;
    for (const image of (await benchmark.load(id)).images) images.set(image.sha256, image);
  }
  return [...images.values()].slice(0, count);
}
