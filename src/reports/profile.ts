// A profile: where the time of a sample of questions goes, phase by phase, with percentiles whose bounds hold for any distribution.
// Errors stand beside the figures, never inside.
import type { CallProfile, GenerationProfile } from '../evaluation/profile-calls.js';
import { type Profile, profileOf, quantileIntervalMethod } from '../evaluation/profile-quantiles.js';
import type { Sweep } from '../evaluation/profile-sweep.js';
import { type Episode, type EpisodeTurn, isErrorStatus, reasoningTokens } from '../evaluation/records.js';
import { percentileMethod, type Rate, rate } from '../evaluation/statistics.js';
import { beganWarm } from './compare-outcome.js';

/** Milliseconds. A tool phase counts the turns that called one. */
export const turnPhases = ['prefill', 'reasoning', 'action', 'tool', 'media', 'orchestration'] as const;
/** model = system + sum over turns of (prefill + reasoning + action), as published. */
export const questionPhases = [
  'model',
  'system',
  'prefill',
  'reasoning',
  'action',
  'tool',
  'media',
  'judge',
  'orchestration',
  'total',
] as const;
/** Tokens per turn; history in expanded positions. */
export const tokenCounts = ['history', 'scored or written', 'inserted', 'generated'] as const;

export type TurnPhase = (typeof turnPhases)[number];
export type QuestionPhase = (typeof questionPhases)[number];
export type TokenCount = (typeof tokenCounts)[number];

export interface LoadProfile {
  /** Questions in flight. */
  readonly load: number;
  readonly questions: { readonly planned: number; readonly timed: number; readonly errors: number };
  readonly success: Rate;
  readonly perTurn: Readonly<Record<TurnPhase, Profile>>;
  readonly perQuestion: Readonly<Record<QuestionPhase, Profile>>;
  readonly tokensPerTurn: Readonly<Record<TokenCount, Profile>>;
  /** The paper's: tokens of all scored candidates, or written ones, per second of reasoning. */
  readonly tokensPerSecond: number | null;
  readonly insertedTokensPerSecond: number | null;
  /** Questions that ended per second of the run's wall time. */
  readonly questionsPerSecond: number;
  readonly cache: {
    /** Questions that began on a cache which another asking of them had warmed. */
    readonly warmQuestions: number;
    readonly cachedTokens: number;
    readonly computedTokens: number;
  };
}

export interface ProfileReport {
  readonly schema: 1;
  readonly arm: string;
  readonly benchmark: string;
  readonly seed: number;
  readonly sample: readonly string[];
  /** Asked first and in none of the figures. */
  readonly warmUp: readonly { readonly id: string; readonly status: string; readonly ms: number }[];
  readonly percentiles: string;
  readonly bounds: string;
  readonly loads: readonly LoadProfile[];
  /** First tokens and decoding of the first load. */
  readonly generations: GenerationProfile;
  /** Client and server time per kind of call of the first load; empty for engines without a server. */
  readonly calls: readonly CallProfile[];
  readonly sweep: Sweep | null;
}

export const profileMethods = { percentiles: percentileMethod, bounds: quantileIntervalMethod };

/** One pass over the episodes of one load; `wallMs` is the time from the first question's start to the last one's end. */
export function profileLoad(load: number, episodes: readonly Episode[], planned: number, wallMs: number): LoadProfile {
  const timed = episodes.filter(({ status }) => !isErrorStatus(status));
  const turns = timed.flatMap((episode) => episode.turns);
  const scored = episodes.filter(({ correct }) => correct !== null);
  const seconds = sum(turns.map(({ timingMs }) => timingMs.reasoning)) / 1000;
  const perSecond = (tokens: number): number | null => (seconds > 0 ? tokens / seconds : null);
  return {
    load,
    questions: { planned, timed: timed.length, errors: episodes.length - timed.length },
    success: rate(scored.filter(({ correct }) => correct).length, scored.length),
    perTurn: record(turnPhases, (phase) =>
      profileOf(turns.filter((turn) => occurred(turn, phase)).map(({ timingMs }) => timingMs[phase])),
    ),
    perQuestion: record(questionPhases, (phase) => profileOf(timed.map((episode) => questionTime(episode, phase)))),
    tokensPerTurn: record(tokenCounts, (count) => profileOf(turns.map((turn) => tokensOf(turn, count)))),
    tokensPerSecond: perSecond(sum(turns.map(({ reasoning }) => reasoningTokens(reasoning)))),
    insertedTokensPerSecond: perSecond(sum(turns.map(({ reasoning }) => reasoning.length))),
    questionsPerSecond: (1000 * timed.length) / wallMs,
    cache: {
      warmQuestions: timed.filter(beganWarm).length,
      cachedTokens: sum(turns.flatMap(usages).map(({ cachedTokens }) => cachedTokens)),
      computedTokens: sum(turns.flatMap(usages).map(({ computedTokens }) => computedTokens)),
    },
  };
}

/** A turn that called no tool is no fast tool call. */
function occurred({ observation }: EpisodeTurn, phase: TurnPhase): boolean {
  return phase !== 'tool' || observation !== null;
}

function questionTime({ turns, timingMs }: Episode, phase: QuestionPhase): number {
  const over = (name: TurnPhase): number => sum(turns.map((turn) => turn.timingMs[name]));
  switch (phase) {
    case 'model':
      return timingMs.system + over('prefill') + over('reasoning') + over('action');
    case 'system':
    case 'judge':
    case 'total':
      return timingMs[phase];
    case 'media':
    case 'orchestration':
      return timingMs[phase] + over(phase);
    default:
      return over(phase);
  }
}

function tokensOf({ history, reasoning, action }: EpisodeTurn, count: TokenCount): number {
  switch (count) {
    case 'history':
      return history.positions;
    case 'scored or written':
      return reasoningTokens(reasoning);
    case 'inserted':
      return reasoning.length;
    case 'generated':
      return action.length;
  }
}

function usages({ prefill, reasoning, action }: EpisodeTurn): EpisodeTurn['prefill'][] {
  return [prefill, reasoning.usage, action.usage];
}

function record<Key extends string, Value>(keys: readonly Key[], of: (key: Key) => Value): Record<Key, Value> {
  return Object.fromEntries(keys.map((key) => [key, of(key)])) as Record<Key, Value>;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
