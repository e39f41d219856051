// Figures of a minibatch and of a step, as numbers for the curves and as lines for people.
import type { Minibatch, Trajectory } from './minibatch.js';

export interface RolloutFigures {
  readonly reward: number | null;
  readonly success: number | null;
  readonly masked: number;
  readonly turns: number;
  readonly actionTokens: number;
  /** Mean entropy of q over the turns, in nats. */
  readonly selectionEntropy: number | null;
  /** Share of turns per candidate, in library order. */
  readonly selections: readonly number[];
  readonly statuses: Readonly<Record<string, number>>;
}

export function rolloutFigures({ header, trajectories }: Minibatch): RolloutFigures {
  const judged = trajectories.filter(({ masked }) => masked === null);
  const turns = trajectories.flatMap((trajectory) => trajectory.turns);
  const selected = turns.flatMap(({ selection }) => selection ?? []);
  const statuses: Record<string, number> = {};
  for (const { status } of trajectories) statuses[status] = (statuses[status] ?? 0) + 1;
  return {
    reward: mean(judged.map(({ reward }) => reward.total ?? 0)),
    success: mean(judged.map(({ correct }) => (correct ? 1 : 0))),
    masked: trajectories.length - judged.length,
    turns: turns.length,
    actionTokens: turns.reduce((sum, { action }) => sum + action, 0),
    selectionEntropy: mean(selected.map(({ scores }) => entropy(scores, header.tau))),
    selections: header.library.candidates.map(
      (_, i) => selected.filter(({ index }) => index === i).length / Math.max(1, selected.length),
    ),
    statuses,
  };
}

export function describeRollout(minibatch: Minibatch): string {
  const { header, trajectories } = minibatch;
  const figures = rolloutFigures(minibatch);
  const groups = groupCount(trajectories);
  const statuses = Object.entries(figures.statuses).map(([status, count]) => `${count} ${status}`);
  const selections = header.library.candidates.map(({ id }, i) => `${id} ${percent(figures.selections[i] ?? 0)}`);
  return [
    `${trajectories.length} trajectories of ${groups} questions: ${statuses.join(', ')}${figures.masked > 0 ? `; ${figures.masked} without a verdict` : ''}`,
    `reward ${fixed(figures.reward)} · success ${figures.success === null ? '–' : percent(figures.success)} · ${figures.turns} turns · ${figures.actionTokens} action tokens`,
    `selection entropy ${fixed(figures.selectionEntropy)} nats · ${selections.join(' · ')}`,
  ].join('\n');
}

function groupCount(trajectories: readonly Trajectory[]): number {
  return new Set(trajectories.map(({ question }) => question)).size;
}

function entropy(scores: readonly number[], tau: number): number {
  const logits = scores.map((value) => value / tau);
  const top = Math.max(...logits);
  const weights = logits.map((logit) => Math.exp(logit - top));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  return weights.reduce((sum, weight) => (weight === 0 ? sum : sum - (weight / total) * Math.log(weight / total)), 0);
}

function mean(values: readonly number[]): number | null {
  return values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0) / values.length;
}

function percent(share: number): string {
  return `${(100 * share).toFixed(1)}%`;
}

function fixed(value: number | null): string {
  return value === null ? '–' : value.toFixed(3);
}
