// Where the time goes, by the definitions of the paper: reasoning is scoring and selecting after the prefill of h_t;
// model latency of a question = system prefill + sum over turns of (prefill + reasoning + action).
import { type Episode, type EpisodeTurn, reasoningTokens } from '../evaluation/records.js';
import { type Distribution, describeDistribution, percentileMethod } from '../evaluation/statistics.js';

type TurnPhase = keyof EpisodeTurn['timingMs'];

/** Sums over the phases of a question's turns, and what only a question has. */
export type QuestionPhase = 'model' | 'system' | 'tool' | 'media' | 'judge' | 'orchestration' | 'total';

export interface LatencySummary {
  readonly unit: 'ms';
  readonly percentiles: string;
  /** `tool` over the turns that called one, all else over all turns. */
  readonly perTurn: Readonly<Record<TurnPhase, Distribution>>;
  /** model is system + prefill + reasoning + action; tools, media, judge and orchestration stand beside it. */
  readonly perQuestion: Readonly<Record<QuestionPhase, Distribution>>;
}

export interface Throughput {
  /** The paper's: tokens of all scored candidates, or those generated where the model wrote its reasoning. Unlike things. */
  readonly scoredTokensPerSecond: number | null;
  /** Tokens that entered the history as reasoning, over the same seconds. */
  readonly insertedTokensPerSecond: number | null;
  readonly scoredTokens: number;
  readonly insertedTokens: number;
  readonly reasoningSeconds: number;
}

const turnPhases: readonly TurnPhase[] = ['prefill', 'reasoning', 'action', 'tool', 'media', 'orchestration'];
const questionPhases: readonly QuestionPhase[] = ['model', 'system', 'tool', 'media', 'judge', 'orchestration', 'total'];

export function createLatency() {
  const perTurn = new Map(turnPhases.map((phase) => [phase, [] as number[]]));
  const perQuestion = new Map(questionPhases.map((phase) => [phase, [] as number[]]));
  let scoredTokens = 0;
  let insertedTokens = 0;
  let reasoningMs = 0;

  return {
    add(episode: Episode): void {
      for (const { timingMs, reasoning, observation } of episode.turns) {
        for (const phase of turnPhases) {
          // A turn that called no tool is no fast tool call.
          if (phase !== 'tool' || observation !== null) perTurn.get(phase)?.push(timingMs[phase]);
        }
        scoredTokens += reasoningTokens(reasoning);
        insertedTokens += reasoning.length;
        reasoningMs += timingMs.reasoning;
      }
      const times = questionTimes(episode);
      for (const phase of questionPhases) perQuestion.get(phase)?.push(times[phase]);
    },
    latency: (): LatencySummary => ({
      unit: 'ms',
      percentiles: percentileMethod,
      perTurn: distributions(perTurn),
      perQuestion: distributions(perQuestion),
    }),
    throughput: (): Throughput => ({
      scoredTokensPerSecond: perSecond(scoredTokens, reasoningMs),
      insertedTokensPerSecond: perSecond(insertedTokens, reasoningMs),
      scoredTokens,
      insertedTokens,
      reasoningSeconds: reasoningMs / 1000,
    }),
  };
}

function questionTimes({ turns, timingMs }: Episode): Record<QuestionPhase, number> {
  const sum = (phase: TurnPhase): number => turns.reduce((total, turn) => total + turn.timingMs[phase], 0);
  return {
    model: timingMs.system + sum('prefill') + sum('reasoning') + sum('action'),
    system: timingMs.system,
    tool: sum('tool'),
    media: timingMs.media + sum('media'),
    judge: timingMs.judge,
    orchestration: timingMs.orchestration + sum('orchestration'),
    total: timingMs.total,
  };
}

function distributions<Phase extends string>(values: ReadonlyMap<Phase, readonly number[]>): Record<Phase, Distribution> {
  return Object.fromEntries([...values].map(([phase, list]) => [phase, describeDistribution(list)])) as Record<
    Phase,
    Distribution
  >;
}

function perSecond(tokens: number, ms: number): number | null {
  return ms > 0 ? (1000 * tokens) / ms : null;
}
