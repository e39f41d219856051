// One arm by itself, as the paper's tables print it: success per benchmark and on average, latencies and throughput.
import { type Distribution, describeDistribution, type Rate, rate } from '../evaluation/statistics.js';
import type { Arm, Outcome } from './compare-outcome.js';

export interface ArmSummary {
  readonly name: string;
  /** In the arm's order. */
  readonly benchmarks: readonly { readonly benchmark: string; readonly planned: number; readonly success: Rate }[];
  /** Mean of the benchmarks' rates; null where one has no verdict. */
  readonly average: number | null;
  /** Milliseconds; questions that failed are in none of the figures below. */
  readonly reasoningPerTurn: Distribution;
  readonly modelPerQuestion: Distribution;
  /** By the paper's definition: all scored candidate tokens, or the tokens written, per second of reasoning. */
  readonly tokensPerSecond: number | null;
  /** Tokens that entered the history as reasoning per second of reasoning. */
  readonly insertedTokensPerSecond: number | null;
  readonly turns: number;
  readonly writtenTurns: number;
  readonly mismatchedTurns: number;
  readonly failed: number;
}

export function summariseArm({ name, runs }: Arm): ArmSummary {
  const outcomes = runs.flatMap((run) => [...run.outcomes.values()]);
  const timed = outcomes.filter(({ failed }) => !failed);
  const benchmarks = runs.map((run) => ({
    benchmark: run.benchmark,
    planned: run.planned,
    success: successOf([...run.outcomes.values()]),
  }));
  const rates = benchmarks.map(({ success }) => success.rate);
  const reasoningMs = timed.flatMap((outcome) => outcome.reasoningMs);
  const seconds = reasoningMs.reduce((sum, ms) => sum + ms, 0) / 1000;
  const perSecond = (tokens: number): number | null => (seconds > 0 ? tokens / seconds : null);
  const total = (of: (outcome: Outcome) => number): number => timed.reduce((sum, outcome) => sum + of(outcome), 0);
  return {
    name,
    benchmarks,
    average: rates.includes(null) ? null : rates.reduce<number>((sum, value) => sum + (value ?? 0), 0) / rates.length,
    reasoningPerTurn: describeDistribution(reasoningMs),
    modelPerQuestion: describeDistribution(timed.map(({ modelMs }) => modelMs)),
    tokensPerSecond: perSecond(total((outcome) => outcome.reasoningTokens)),
    insertedTokensPerSecond: perSecond(total((outcome) => outcome.insertedTokens)),
    turns: total((outcome) => outcome.turns),
    writtenTurns: total((outcome) => outcome.writtenTurns),
    mismatchedTurns: total((outcome) => outcome.mismatchedTurns),
    failed: outcomes.length - timed.length,
  };
}

function successOf(outcomes: readonly Outcome[]): Rate {
  const scored = outcomes.filter(({ correct }) => correct !== null);
  return rate(scored.filter(({ correct }) => correct).length, scored.length);
}
