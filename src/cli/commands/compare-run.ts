// Arms that run now: on the same questions, one at a time, the order of the arms turning with every question, so that neither
// heat, nor load, nor a warm cache favours one of them. Each arm leaves a run's folder, which can be resumed.
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { checkOutput } from '../../evaluation/output.js';
import { planQuestions } from '../../evaluation/plan.js';
import { runQuestions } from '../../evaluation/run.js';
import { RunFolder } from '../../evaluation/run-folder.js';
import { createSummary } from '../../reports/summary.js';
import type { Benchmark, Engine } from '../../types.js';
import { openEngine } from '../engine.js';
import { onInterrupt } from '../interrupt.js';
import { describeRun } from '../manifest.js';
import type { Settings } from '../options.js';
import { createProgress } from '../progress.js';
import { RESULT_FIELDS } from '../tools.js';
import { assemble, type Parts, type Wiring, wireParts } from '../wire.js';

export interface LiveArm {
  readonly name: string;
  readonly settings: Settings;
}

export interface LiveRun {
  /** Folder per arm, in the order given. */
  readonly folders: readonly string[];
  readonly interrupted: boolean;
}

interface OpenArm {
  readonly arm: LiveArm;
  readonly wiring: Wiring;
  readonly folder: RunFolder;
  readonly summary: ReturnType<typeof createSummary>;
}

/** Runs what the folders still owe. Whatever happens, folders are sorted and closed and engines stopped. */
export async function runArms(arms: readonly LiveArm[], output: string, fresh: boolean): Promise<LiveRun> {
  const opened: OpenArm[] = [];
  const interrupt = onInterrupt((text) => process.stderr.write(`\n${text}\n`));
  let plan: Benchmark['entries'] = [];
  try {
    for (const arm of arms) {
      const open = await openArm(arm, join(output, folderName(arm.name)), fresh, opened);
      opened.push(open);
      plan = planOf(open);
    }
    await askInTurn(opened, plan, interrupt);
  } finally {
    interrupt.dispose();
    for (const open of opened) await closeArm(open, plan);
    for (const engine of new Set(opened.map(({ wiring }) => wiring.agent.engine))) await engine.close();
    for (const tools of new Set(opened.map(({ wiring }) => wiring.tools))) await tools.close();
  }
  return {
    folders: opened.map(({ folder }) => folder.path),
    interrupted: interrupt.drain.aborted,
  };
}

async function openArm(arm: LiveArm, path: string, fresh: boolean, opened: readonly OpenArm[]): Promise<OpenArm> {
  await checkOutput(path);
  const { settings } = arm;
  const parts = await withSharedTools(await wireParts(settings, process.env), settings, opened);
  const shared = sharedEngine(opened, arm);
  const engine = shared ?? (await openEngine({ settings, ...parts, environment: process.env, hooks: {} }));
  try {
    const wiring = await assemble(parts, engine, settings);
    const plan = planQuestions(wiring.benchmark.entries, settingsOfPlan(settings));
    const summary = createSummary({ planned: plan.length, candidates: wiring.candidates });
    const manifest = await describeRun(settings, wiring, plan, new Date());
    const folder = await RunFolder.open(path, manifest, { fresh, retryErrors: false, onKept: summary.add });
    return { arm, wiring, folder, summary };
  } catch (error) {
    if (shared === undefined) await engine.close();
    if (!opened.some(({ wiring }) => wiring.tools === parts.tools)) await parts.tools.close();
    throw error;
  }
}

/** Arms with the same tools use the same ones, so that what one of them recorded is what the other gets. */
async function withSharedTools(parts: Parts, settings: Settings, opened: readonly OpenArm[]): Promise<Parts> {
  const key = toolKey(settings);
  const earlier = opened.find(({ arm }) => toolKey(arm.settings) === key);
  if (earlier === undefined) return parts;
  await parts.tools.close();
  return { ...parts, tools: earlier.wiring.tools };
}

function toolKey(settings: Settings): string {
  const fields = [...RESULT_FIELDS, 'tools', 'toolStore', 'benchmark', 'split', 'data'] as const;
  return JSON.stringify(fields.map((name) => settings[name] ?? null));
}

/**
 * An engine that an earlier arm has started with the same settings: one set of weights serves them all. Servers that run already
 * are connected to once per arm, since each connection has its own part of their cache.
 */
function sharedEngine(opened: readonly OpenArm[], { settings }: LiveArm): Engine | undefined {
  if (settings.engineUrl !== undefined) return undefined;
  const key = engineKey(settings);
  return opened.find(({ arm }) => engineKey(arm.settings) === key)?.wiring.agent.engine;
}

function engineKey({ engine, model, workers, python, script, library }: Settings): string {
  // A scripted engine knows its arm's candidates.
  return JSON.stringify([engine, model, workers, python, engine === 'scripted' ? [script, library] : null]);
}

function settingsOfPlan({ seed, limit, sample }: Settings) {
  return { seed, ...(limit !== undefined && { limit }), ...(sample !== undefined && { sample }) };
}

function planOf({ arm, wiring }: OpenArm): Benchmark['entries'] {
  return planQuestions(wiring.benchmark.entries, settingsOfPlan(arm.settings));
}

async function askInTurn(
  arms: readonly OpenArm[],
  plan: Benchmark['entries'],
  interrupt: ReturnType<typeof onInterrupt>,
): Promise<void> {
  const clock = (): number => performance.now();
  const owed = arms.reduce((sum, { folder }) => sum + plan.filter(({ id }) => !folder.has(id)).length, 0);
  const progress = createProgress(owed, process.stderr, clock);
  try {
    for (const [i, entry] of plan.entries()) {
      for (const open of turned(arms, i)) {
        if (!open.folder.has(entry.id)) await ask(open, entry, { clock, ...interrupt, onEpisode: progress.add });
      }
    }
  } finally {
    progress.stop();
  }
}

/** The arms in an order that starts one further for every question. */
export function turned<T>(arms: readonly T[], question: number): T[] {
  const start = question % arms.length;
  return [...arms.slice(start), ...arms.slice(0, start)];
}

interface Asking {
  readonly clock: () => number;
  readonly drain: AbortSignal;
  readonly signal: AbortSignal;
  readonly onEpisode: ReturnType<typeof createProgress>['add'];
}

async function ask({ arm, wiring, folder, summary }: OpenArm, entry: Benchmark['entries'][number], asking: Asking) {
  const { agent, benchmark, judge } = wiring;
  const { seed, questionLimit } = arm.settings;
  const { clock, drain, signal } = asking;
  const outcomes = runQuestions({
    agent,
    benchmark,
    judge,
    seed,
    clock,
    drain,
    signal,
    entries: [entry],
    concurrency: 1,
    breaker: () => null,
    ...(questionLimit !== undefined && { questionLimitMs: 1000 * questionLimit }),
  });
  for await (const { episode, images } of outcomes) {
    await folder.append(episode, images);
    summary.add(episode);
    asking.onEpisode(episode);
  }
}

async function closeArm({ folder, summary }: OpenArm, plan: Benchmark['entries']): Promise<void> {
  await folder.sort(plan.map(({ id }) => id));
  await folder.write('summary.json', `${JSON.stringify(summary.result(), null, 2)}\n`);
  await folder.close();
}

function folderName(arm: string): string {
  return arm.replace(/[^\w.+-]+/g, '-').replace(/^-+|-+$/g, '') || 'arm';
}
