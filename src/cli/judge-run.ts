// A finished run judged again: answers from its records, questions from its benchmark, no engine.
import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DataError, JudgeError } from '../errors.js';
import { readEpisodes } from '../evaluation/episodes-file.js';
import { lockFolder } from '../evaluation/lock.js';
import { rewriteEpisodes } from '../evaluation/rewrite.js';
import { type Agreement, agreementOf } from '../judges/agreement.js';
import { type GivenAnswer, type Judged, judgeAnswers } from '../judges/rejudge.js';
import { latencyCsv, successCsv } from '../reports/csv.js';
import { createSummary, type Summary } from '../reports/summary.js';
import type { Benchmark, Judge } from '../types.js';
import { type Environment, type JudgeSettings, judgePromptOf, openJudge } from './judge.js';
import { type Config, identityOf, type Settings } from './options.js';
import { type RunManifest, readRunManifest } from './run-manifest.js';
import { loadBenchmark } from './wire.js';

export interface JudgeRunOptions {
  /** Fields of the judge that differ from the run's, and where its data set lies now. */
  readonly changes: Config;
  /** Leave the run as it is. */
  readonly compareOnly: boolean;
  readonly environment: Environment;
  readonly signal: AbortSignal;
  readonly onStart: (answers: number) => void;
  readonly onJudged: () => void;
}

export interface JudgedRun {
  readonly former: string;
  readonly judge: string;
  /** Answers that were judged. */
  readonly answers: number;
  /** Of these, such without a verdict, by the kind of error. */
  readonly errors: Readonly<Record<string, number>>;
  readonly firstError: string | null;
  readonly agreement: Agreement;
  readonly success: { readonly former: Summary['success']['overall']; readonly now: Summary['success']['overall'] };
}

/** Nothing is written before every answer is judged. Throws DataError for other data than the run's, JudgeError without any verdict. */
export async function judgeRun(folder: string, options: JudgeRunOptions): Promise<JudgedRun> {
  const manifest = await readRunManifest(folder);
  const settings = judgeSettings(manifest, options.changes);
  const benchmark = await openBenchmark(manifest, options.changes, folder);
  const judge = await openJudge(settings, options.environment);
  const unlock = options.compareOnly ? async () => undefined : await lockFolder(folder);
  try {
    const episodes = join(folder, 'episodes.jsonl');
    const former = await readRun(episodes, manifest, benchmark);
    options.onStart(former.answers.length);
    const { signal, onJudged } = options;
    const judged = await judgeAnswers(former.answers, judge, { concurrency: settings.judgeConcurrency, signal, onJudged });
    requireVerdicts(judged, judge);
    const now = await summarise(episodes, manifest, judged);
    if (!options.compareOnly) await write(folder, manifest, settings, judge, judged, now);
    return {
      former: manifest.identity.judge,
      judge: judge.name,
      answers: judged.length,
      ...errorsOf(judged),
      agreement: agreementOf(former.verdicts, new Map(judged.map(({ id, correct }) => [id, correct]))),
      success: { former: former.summary.success.overall, now: now.success.overall },
    };
  } finally {
    await unlock();
  }
}

/** The run's judge with the changes; fields of the model judge mean nothing to another. */
function judgeSettings({ settings }: RunManifest, changes: Config): JudgeSettings {
  const merged = { ...settings, ...changes } as Config;
  const { judge, judgeConcurrency, judgeUrl, judgeModel, judgeImages, judgeCache } = merged;
  const common = { judge: judge ?? 'exact', judgeConcurrency: judgeConcurrency ?? 8 };
  if (common.judge === 'exact') return common;
  return {
    ...common,
    ...(judgeUrl !== undefined && { judgeUrl }),
    ...(judgeModel !== undefined && { judgeModel }),
    ...(judgeImages !== undefined && { judgeImages }),
    ...(judgeCache !== undefined && { judgeCache }),
  };
}

async function openBenchmark({ settings, identity }: RunManifest, { data }: Config, folder: string): Promise<Benchmark> {
  const { benchmark: name, split } = settings;
  const where = data ?? settings.data;
  const benchmark = await loadBenchmark({ benchmark: name, ...(split && { split }), ...(where && { data: where }) });
  if (benchmark.sha256 === identity.benchmark.sha256) return benchmark;
  throw new DataError('the benchmark is not the one of the run', {
    where: folder,
    expected: `${name} with SHA-256 ${identity.benchmark.sha256}`,
    found: benchmark.sha256,
    remedy: 'Prepare the same revision, or name its folder with --data.',
  });
}

interface FormerRun {
  readonly answers: readonly GivenAnswer[];
  readonly verdicts: ReadonlyMap<string, boolean | null>;
  readonly summary: Summary;
}

/** Only answers are judged: no answer is not success, and an error has no verdict. */
async function readRun(episodes: string, manifest: RunManifest, benchmark: Benchmark): Promise<FormerRun> {
  const summary = emptySummary(manifest);
  const answers: GivenAnswer[] = [];
  const verdicts = new Map<string, boolean | null>();
  for await (const episode of readEpisodes(episodes)) {
    const { id, status, answer, correct } = episode;
    summary.add(episode);
    if (status !== 'answer' || answer === null) continue;
    answers.push({ id, answer, question: () => benchmark.load(id) });
    verdicts.set(id, correct);
  }
  return { answers, verdicts, summary: summary.result() };
}

function emptySummary({ plan, library }: RunManifest) {
  return createSummary({ planned: plan.length, candidates: library.candidates });
}

/** A judge that is down must not wipe out the verdicts of one that was not; answers equal to a gold need no model and prove nothing. */
function requireVerdicts(judged: readonly Judged[], { name }: Judge): void {
  const failed = judged.find(({ error }) => error !== null);
  if (failed === undefined || judged.some(({ correct, judge }) => correct !== null && judge === name)) return;
  throw new JudgeError('the judge gave not one verdict; the run stays as it was', {
    where: name,
    found: failed.error?.message ?? 'no reply',
  });
}

function withVerdict<E extends { readonly id: string }>(episode: E, verdicts: ReadonlyMap<string, Judged>): E {
  const judged = verdicts.get(episode.id);
  return judged === undefined ? episode : { ...episode, correct: judged.correct, judge: judged.judge, error: judged.error };
}

async function summarise(episodes: string, manifest: RunManifest, judged: readonly Judged[]): Promise<Summary> {
  const verdicts = new Map(judged.map((verdict) => [verdict.id, verdict]));
  const summary = emptySummary(manifest);
  for await (const episode of readEpisodes(episodes)) summary.add(withVerdict(episode, verdicts));
  return summary.result();
}

/** Records first: should anything fail behind them, judging again mends the rest. */
async function write(
  folder: string,
  manifest: RunManifest,
  settings: JudgeSettings,
  judge: Judge,
  judged: readonly Judged[],
  summary: Summary,
): Promise<void> {
  const verdicts = new Map(judged.map((verdict) => [verdict.id, verdict]));
  await rewriteEpisodes(join(folder, 'episodes.jsonl'), (episode) => withVerdict(episode, verdicts));
  const replace = async (name: string, text: string): Promise<void> => {
    await writeFile(join(folder, `${name}.part`), text);
    await rename(join(folder, `${name}.part`), join(folder, name));
  };
  await replace('manifest.json', `${JSON.stringify(withJudge(manifest, settings, judge), null, 2)}\n`);
  await replace('summary.json', `${JSON.stringify(summary, null, 2)}\n`);
  await replace('success.csv', successCsv(summary));
  await replace('latency.csv', latencyCsv(summary));
}

/** As if the run had been started with this judge, so that it can be resumed with it. */
function withJudge(manifest: RunManifest, settings: JudgeSettings, judge: Judge): RunManifest {
  const { judgePrompt: _, ...identity } = manifest.identity;
  return {
    ...manifest,
    settings: { ...withoutJudge(manifest.settings), ...settings } as RunManifest['settings'],
    identity: {
      ...identity,
      settings: { ...withoutJudge(identity.settings), ...identityOf(settings as Settings) },
      judge: judge.name,
      ...judgePromptOf(judge),
    },
  };
}

function withoutJudge(settings: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(settings).filter(([name]) => !/^judge/.test(name)));
}

function errorsOf(judged: readonly Judged[]): Pick<JudgedRun, 'errors' | 'firstError'> {
  const errors: Record<string, number> = {};
  let firstError: string | null = null;
  for (const { error } of judged) {
    if (error === null) continue;
    errors[error.kind] = (errors[error.kind] ?? 0) + 1;
    firstError ??= error.message;
  }
  return { errors, firstError };
}
