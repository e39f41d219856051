// One question from its picture to its verdict: the place where a question's errors are caught and become part of its record.
import { type Agent, runTrajectory } from '../agent/algorithm.js';
import { Context } from '../agent/context.js';
import { SsrError } from '../errors.js';
import { createRandom, deriveSeed } from '../random.js';
import type { Benchmark, Image, Judge, Question, Selection, Stop, ToolResult, Turn, Usage } from '../types.js';
import { type Episode, type EpisodeTurn, isErrorStatus } from './records.js';
import { type Clock, createStopwatch, type Stopwatch } from './stopwatch.js';

export interface EpisodeDependencies {
  readonly agent: Agent;
  readonly benchmark: Benchmark;
  readonly judge: Judge;
  readonly clock: Clock;
  /** The run's seed. */
  readonly seed: number;
  /** Most milliseconds a question may take; longer ones are errors, not wrong answers. */
  readonly questionLimitMs?: number;
  readonly signal?: AbortSignal;
}

/** An episode and the pictures it refers to by hash. */
export interface EpisodeOutcome {
  readonly episode: Episode;
  readonly images: readonly Image[];
}

/** Runs one question. Never throws: a surprise is recorded with status `error`, with the turns that were finished before it. */
export async function runEpisode(entry: { id: string; type: string }, run: EpisodeDependencies): Promise<EpisodeOutcome> {
  const { agent, clock } = run;
  const signal = limitedSignal(run);
  const started = clock();
  const watch = createStopwatch(clock);
  const context = new Context(entry.id, agent.info.geometry, agent.tokenizer.idOf('<|image_pad|>'));
  const seed = deriveSeed(run.seed, entry.id);
  const turns: EpisodeTurn[] = [];
  let system: Usage | null = null;
  let timing = { system: 0, media: 0, orchestration: 0 };
  let question: Question | null = null;
  let end: Ending;
  try {
    const loaded = await watch.span('media', () => untilAborted(run.benchmark.load(entry.id), signal));
    question = loaded;
    const stop = await runTrajectory(loaded, agent, {
      context,
      random: createRandom(seed),
      span: watch.span,
      onSystem(usage) {
        system = usage;
      },
      onTurn(turn) {
        const lap = watch.lap();
        if (turns.length === 0) timing = { system: lap.system, media: lap.media, orchestration: 0 };
        turns.push(turnRecord(turn, turns.length === 0 ? { ...lap, media: 0 } : lap));
      },
      ...(signal && { signal }),
    });
    end = { stop, ...(await verdict(loaded, stop, run)) };
  } catch (error) {
    end = failure(error, run.signal);
  } finally {
    await agent.engine.release(entry.id).catch(() => undefined);
  }
  const tail = watch.lap();
  return {
    images: context.images,
    episode: {
      schema: 1,
      id: entry.id,
      type: entry.type,
      seed,
      status: end.stop.status,
      reason: end.stop.reason,
      answer: end.stop.answer,
      answers: [...(question?.answers ?? [])],
      correct: end.correct,
      judge: end.judge,
      error: end.error,
      expected: question?.expected ? [...question.expected] : null,
      ids: [...context.ids],
      positions: context.length,
      systemLength: agent.systemIds.length,
      system: system && usageRecord(system),
      images: context.images.map(({ sha256, mediaType, width, height }) => ({ sha256, mediaType, width, height })),
      turns,
      timingMs: {
        total: clock() - started,
        system: timing.system + tail.system,
        media: timing.media + tail.media,
        judge: end.judgeMs,
        orchestration: timing.orchestration + tail.orchestration - end.judgeMs,
      },
    },
  };
}

interface Ending {
  readonly stop: { readonly status: Episode['status']; readonly reason: string | null; readonly answer: string | null };
  readonly correct: boolean | null;
  readonly judge: string | null;
  readonly judgeMs: number;
  readonly error: Episode['error'];
}

/** No answer is not success; an answer is the judge's to decide; errors and missing gold have no verdict. */
async function verdict(
  question: Question,
  stop: Stop,
  { judge, clock, signal }: EpisodeDependencies,
): Promise<Omit<Ending, 'stop'>> {
  const none = { correct: null, judge: null, judgeMs: 0, error: null };
  if (isErrorStatus(stop.status)) return none;
  if (question.answers.length === 0) return none;
  if (stop.answer === null) return { ...none, correct: false };
  const started = clock();
  try {
    const { correct, judge: name } = await judge.judge(question, stop.answer, signal);
    return { correct, judge: name, judgeMs: clock() - started, error: null };
  } catch (error) {
    return { ...none, judge: judge.name, judgeMs: clock() - started, error: errorRecord(error) };
  }
}

/** The run's signal, and the question's own time limit. */
function limitedSignal({ signal, questionLimitMs }: EpisodeDependencies): AbortSignal | undefined {
  if (questionLimitMs === undefined) return signal;
  const limit = AbortSignal.timeout(questionLimitMs);
  return signal ? AbortSignal.any([signal, limit]) : limit;
}

/** A read that hangs must not outlive its question. */
function untilAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work;
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}

function failure(error: unknown, signal?: AbortSignal): Ending {
  const cancelled = signal?.aborted === true;
  return {
    stop: { status: cancelled ? 'cancelled' : 'error', reason: messageOf(error), answer: null },
    correct: null,
    judge: null,
    judgeMs: 0,
    error: cancelled ? null : errorRecord(error),
  };
}

function errorRecord(error: unknown): { kind: string; message: string } {
  const named = error instanceof SsrError || (error instanceof DOMException && error.name === 'TimeoutError');
  return { kind: named ? error.name : 'UnexpectedError', message: messageOf(error) };
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function turnRecord(turn: Turn, times: ReturnType<Stopwatch['lap']>): EpisodeTurn {
  const { reasoning, generation, observation } = turn;
  const { system: _, ...timingMs } = times;
  return {
    history: { length: turn.historyLength, positions: turn.historyPositions },
    prefill: usageRecord(turn.prefill),
    reasoning: {
      length: reasoning.ids.length,
      usage: usageRecord(reasoning.usage),
      selection: reasoning.selection && mutable(reasoning.selection),
      written: reasoning.written && [...reasoning.written],
      ...(reasoning.match && { match: { ...reasoning.match } }),
    },
    action: {
      length: generation.tokens.length,
      text: turn.actionText,
      logprobs: generation.tokens.map(({ logprob }) => logprob),
      finishReason: generation.finishReason,
      parsed: turn.action.kind === 'image_zoom_in_tool' ? { ...turn.action, box: [...turn.action.box] } : turn.action,
      usage: usageRecord(generation.usage),
    },
    observation: observation && {
      length: observation.ids.length,
      images: observation.images.map(({ sha256 }) => sha256),
      result: resultRecord(observation.result),
    },
    timingMs,
  };
}

/** Counts only: times stand elsewhere, so that equal runs have equal records. */
function usageRecord({ waitedMs: _, ...counts }: Usage): EpisodeTurn['prefill'] {
  return counts;
}

function mutable(selection: Selection): NonNullable<EpisodeTurn['reasoning']['selection']> {
  return {
    ...selection,
    scores: [...selection.scores],
    probabilities: [...selection.probabilities],
    tokenLogprobs: selection.tokenLogprobs.map((row) => [...row]),
  };
}

/** Pictures become their hashes. */
function resultRecord(result: ToolResult): NonNullable<EpisodeTurn['observation']>['result'] {
  if (result.kind === 'image') return { kind: 'image', image: result.image.sha256 };
  if (result.kind === 'error') return result;
  return {
    kind: 'results',
    results: result.results.map(({ thumbnail, ...rest }) => ({ ...rest, ...(thumbnail && { thumbnail: thumbnail.sha256 }) })),
  };
}
