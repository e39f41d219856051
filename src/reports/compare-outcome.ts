// What a comparison keeps of one question: verdict, times and token counts, small enough for every question of every arm.
import { type Episode, isErrorStatus, reasoningTokens } from '../evaluation/records.js';

export interface Outcome {
  readonly id: string;
  readonly type: string;
  /** Null where there is no verdict. */
  readonly correct: boolean | null;
  /** Ended by a surprise: no figure of it counts. */
  readonly failed: boolean;
  /** Reasoning latency of each turn, in milliseconds. */
  readonly reasoningMs: readonly number[];
  /** system + sum over turns of (prefill + reasoning + action), in milliseconds. */
  readonly modelMs: number;
  /** By the paper's count: all scored candidates, or the tokens written. */
  readonly reasoningTokens: number;
  readonly insertedTokens: number;
  /** Turns whose thought the model wrote. */
  readonly writtenTurns: number;
  readonly turns: number;
  /** Written thoughts that were meant to be an entry and are not its text. */
  readonly mismatchedTurns: number;
  /** The question began on a cache that another asking of it had warmed. */
  readonly warm: boolean;
}

export function outcomeOf(episode: Episode): Outcome {
  const { id, type, correct, status, turns, timingMs } = episode;
  const model = turns.reduce((sum, { timingMs: ms }) => sum + ms.prefill + ms.reasoning + ms.action, timingMs.system);
  return {
    id,
    type,
    correct,
    failed: isErrorStatus(status),
    reasoningMs: turns.map((turn) => turn.timingMs.reasoning),
    modelMs: model,
    reasoningTokens: turns.reduce((sum, { reasoning }) => sum + reasoningTokens(reasoning), 0),
    insertedTokens: turns.reduce((sum, { reasoning }) => sum + reasoning.length, 0),
    turns: turns.length,
    mismatchedTurns: turns.filter(({ reasoning }) => (reasoning.match?.distance ?? 0) > 0).length,
    writtenTurns: turns.filter(({ reasoning }) => reasoning.written !== null).length,
    warm: beganWarm(episode),
  };
}

/**
 * Whether more than half of the first history beyond the system prompt was in the cache before the question began. Questions
 * share their first words, and with a cache over all prompts these are found as well; its picture only where it was asked before.
 */
export function beganWarm({ turns, systemLength }: Pick<Episode, 'turns' | 'systemLength'>): boolean {
  const [first] = turns;
  if (first === undefined) return false;
  return first.prefill.cachedTokens - systemLength > (first.history.positions - systemLength) / 2;
}

/** One arm on one benchmark. */
export interface ArmRun {
  readonly benchmark: string;
  readonly facts: Facts;
  readonly outcomes: ReadonlyMap<string, Outcome>;
  /** Questions of the plan. */
  readonly planned: number;
}

export interface Arm {
  readonly name: string;
  readonly runs: readonly ArmRun[];
}

/** What two arms must share to be compared; `other` may differ and is reported. */
export interface Facts {
  readonly data: string;
  readonly questions: string;
  readonly judge: string;
  readonly model: string;
  readonly engine: string;
  readonly tools: string;
  readonly cache: string;
  readonly load: string;
  readonly machine: string;
  readonly other: Readonly<Record<string, string>>;
}
