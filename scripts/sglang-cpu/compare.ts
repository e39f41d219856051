// Two engines on the same histories: one plays the questions, the other scores and acts at every turn the first one saw, so that a
// choice that flips does not end the comparison.
import type { Agent } from '../../src/agent/algorithm.js';
import { runTrajectory } from '../../src/agent/algorithm.js';
import { Context } from '../../src/agent/context.js';
import { margin, score, select } from '../../src/agent/scoring.js';
import { createRandom } from '../../src/random.js';
import type { Benchmark, Candidate, Engine, Image, Turn } from '../../src/types.js';

/** One turn, seen by both. */
export interface ComparedTurn {
  readonly id: string;
  readonly turn: number;
  /** Largest difference of a candidate token's log-prob, and of a candidate's score, in nats. */
  readonly perToken: number;
  readonly perScore: number;
  /** The first engine's best score minus its second best. */
  readonly margin: number;
  readonly choice: readonly [string, string];
  /** Whether both generated the same ids behind the first engine's choice. */
  readonly sameAction: boolean;
  /** Their texts. */
  readonly actions: readonly [string, string];
}

export async function compareQuestion(
  id: string,
  agent: Agent,
  other: Engine,
  candidates: readonly Candidate[],
  benchmark: Benchmark,
): Promise<ComparedTurn[]> {
  const { tokenizer } = agent;
  const imagePadId = tokenizer.idOf('<|image_pad|>');
  const turns: Turn[] = [];
  const context = new Context(`reference-${id}`, agent.info.geometry, imagePadId);
  await runTrajectory(await benchmark.load(id), agent, {
    context,
    random: createRandom(1),
    span: (_, run) => run(),
    onSystem: () => undefined,
    onTurn: (turn) => turns.push(turn),
  });
  await agent.engine.release(context.trajectory);
  const replay = new Context(`compared-${id}`, agent.info.geometry, imagePadId);
  const compared: ComparedTurn[] = [];
  for (const [t, turn] of turns.entries()) {
    appendUntil(replay, context, turn.historyLength, imagePadId);
    compared.push(await compareTurn(id, t, turn, replay, agent, other, candidates));
  }
  await other.release(replay.trajectory);
  return compared;
}

async function compareTurn(
  id: string,
  t: number,
  turn: Turn,
  history: Context,
  agent: Agent,
  other: Engine,
  candidates: readonly Candidate[],
): Promise<ComparedTurn> {
  await other.prefill(history);
  const { rows } = await other.score(
    history,
    candidates.map(({ ids }) => ids),
  );
  const ours = turn.reasoning.selection?.tokenLogprobs ?? [];
  const theirs = rows.map((row) => row.map(({ logprob }) => logprob));
  const [ourScores, theirScores] = [ours, theirs].map((matrix) => matrix.map((row) => score(row, 1))) as [number[], number[]];
  const nameOf = (scores: readonly number[]) => candidates[select(scores, 0, () => 0)]?.id ?? '';
  history.append(turn.reasoning.ids);
  const { tokens } = await other.generate(history, { ...agent.sampling, temperature: 0 });
  const ids = tokens.map((token) => token.id);
  const ownIds = turn.generation.tokens.map((token) => token.id);
  return {
    id,
    turn: t,
    perToken: Math.max(...ours.flatMap((row, i) => row.map((value, j) => Math.abs(value - (theirs[i]?.[j] ?? Number.NaN))))),
    perScore: Math.max(...ourScores.map((value, i) => Math.abs(value - (theirScores[i] ?? Number.NaN)))),
    margin: margin(ourScores) ?? Number.POSITIVE_INFINITY,
    choice: [nameOf(ourScores), nameOf(theirScores)],
    sameAction: ids.join() === ownIds.join(),
    actions: [agent.tokenizer.decode(ownIds), agent.tokenizer.decode(ids)],
  };
}

/** Brings a replayed history to the length that the original had at the start of a turn. */
function appendUntil(replay: Context, original: Context, length: number, imagePadId: number): void {
  const ids = original.ids.slice(replay.ids.length, length);
  const count = ids.filter((id) => id === imagePadId).length;
  const images: readonly Image[] = original.images.slice(replay.images.length, replay.images.length + count);
  replay.append(ids, images);
}
