// Rewards: outcome (the judge) and format (well-formed to its end), 1 and 0.5 as in MARS; the paper's are unknown. Efficiency is an
// option: among the right trajectories of one question, the one with the fewest generated tokens earns all of it, the longest none.
import { type Episode, isErrorStatus } from '../evaluation/records.js';
import type { Trajectory } from './minibatch.js';

export interface RewardWeights {
  readonly outcome: number;
  readonly format: number;
  readonly efficiency: number;
}

export const DEFAULT_REWARDS: RewardWeights = { outcome: 1, format: 0.5, efficiency: 0 };

type Reward = Trajectory['reward'];

/** Why an episode has no verdict; null where it has one. A wrong or missing answer is a verdict, an outage is not. */
export function maskReason({ status, correct, error, answers }: Episode): Trajectory['masked'] {
  if (isErrorStatus(status)) return status === 'tool-error' || status === 'cancelled' ? status : 'error';
  if (correct !== null) return null;
  return error === null && answers.length === 0 ? 'no-gold' : 'judge-error';
}

/** Rewards of the trajectories of one question, in their order. Unsuccessful and truncated ones are scored too. */
export function groupRewards(group: readonly Episode[], weights: RewardWeights): Reward[] {
  const lengths = group.filter(({ correct }) => correct === true).map(generatedTokens);
  const [shortest, longest] = [Math.min(...lengths), Math.max(...lengths)];
  return group.map((episode) => {
    const format = weights.format * (episode.status === 'answer' ? 1 : 0);
    if (maskReason(episode) !== null) return { outcome: null, format, efficiency: 0, total: null };
    const right = episode.correct === true;
    const saved = longest > shortest ? (longest - generatedTokens(episode)) / (longest - shortest) : 1;
    const outcome = right ? weights.outcome : 0;
    const efficiency = right ? weights.efficiency * saved : 0;
    return { outcome, format, efficiency, total: outcome + format + efficiency };
  });
}

/** Inserted reasoning costs no generation. */
export function generatedTokens({ turns }: Episode): number {
  return turns.reduce(
    (sum, { reasoning, action }) => sum + (reasoning.written === null ? 0 : reasoning.length) + action.length,
    0,
  );
}
