// From an episode's record to a trajectory of a minibatch, checked again: every span must hold the ids that were scored or generated,
// and S and log q must follow from the logged log-probs.
import { logSoftmax, score } from '../agent/scoring.js';
import { EngineError } from '../errors.js';
import type { Episode, EpisodeTurn } from '../evaluation/records.js';
import type { Candidate } from '../types.js';
import { imageFile, type Trajectory } from './minibatch.js';
import { maskReason } from './rewards.js';

export interface TrajectoryFacts {
  readonly question: string;
  readonly weights: string;
  readonly candidates: readonly Candidate[];
  readonly alpha: number;
  readonly tau: number;
  readonly reward: Trajectory['reward'];
}

/** Rounding between the same sum taken in two orders, in nats. */
const ROUNDING = 1e-6;

/** Throws EngineError where the record contradicts itself: such a trajectory must never train anything. */
export function toTrajectory(episode: Episode, facts: TrajectoryFacts): Trajectory {
  const { id, type, seed, status, correct, ids, positions, images } = episode;
  let end = episode.turns[0]?.history.length ?? 0;
  const turns = episode.turns.map((turn, t) => {
    const where = `${id}, turn ${t}`;
    if (turn.history.length !== end) contradiction(where, `a history of ${end} ids`, String(turn.history.length));
    checkReasoning(turn, ids, facts, where);
    const observation = turn.observation?.length ?? 0;
    end += turn.reasoning.length + turn.action.length + observation;
    if (turn.action.logprobs.length !== turn.action.length) {
      contradiction(where, `${turn.action.length} log-probs of the action`, String(turn.action.logprobs.length));
    }
    return {
      history: turn.history.length,
      reasoning: turn.reasoning.length,
      action: turn.action.length,
      observation,
      selection: selectionRecord(turn),
      written: turn.reasoning.written,
      actionLogprobs: turn.action.logprobs,
    };
  });
  const masked = maskReason(episode);
  // What an interrupted turn left behind is no part of any turn.
  if (turns.length > 0 && masked === null && end !== ids.length) contradiction(id, `${end} ids in all`, String(ids.length));
  return {
    kind: 'trajectory',
    id,
    question: facts.question,
    type,
    seed,
    status,
    weights: facts.weights,
    correct,
    masked,
    reward: facts.reward,
    ids,
    positions,
    images: images.map((image) => ({ sha256: image.sha256, file: imageFile(image), width: image.width, height: image.height })),
    turns,
  };
}

function checkReasoning(
  { history, reasoning }: EpisodeTurn,
  ids: readonly number[],
  facts: TrajectoryFacts,
  where: string,
): void {
  const { selection, written, length } = reasoning;
  if (selection === null) {
    if (written?.length !== length)
      contradiction(where, `${length} log-probs of written reasoning`, String(written?.length ?? 'none'));
    return;
  }
  const candidate = facts.candidates[selection.index];
  const inserted = ids.slice(history.length, history.length + length);
  if (candidate === undefined || candidate.ids.length !== length || !candidate.ids.every((id, i) => id === inserted[i])) {
    contradiction(where, `the ids of candidate ${selection.candidate} after the history`, inserted.join(' '));
  }
  const scores = selection.tokenLogprobs.map((row) => score(row, facts.alpha));
  const gap = Math.max(...scores.map((value, i) => Math.abs(value - (selection.scores[i] ?? Number.NaN))));
  if (!(gap < ROUNDING)) contradiction(where, 'scores that follow from the token log-probs', `a gap of ${gap}`);
  const logProbability = logSoftmax(selection.scores, facts.tau)[selection.index] ?? Number.NaN;
  if (!(Math.abs(logProbability - selection.logProbability) < ROUNDING)) {
    contradiction(where, `log q = ${logProbability}`, String(selection.logProbability));
  }
}

function selectionRecord({ reasoning: { selection } }: EpisodeTurn): Trajectory['turns'][number]['selection'] {
  if (selection === null) return null;
  const { index, candidate, scores, logProbability } = selection;
  return { index, candidate, scores, logProbability };
}

function contradiction(where: string, expected: string, found: string): never {
  throw new EngineError('a rollout contradicts its record', { where, expected, found });
}
