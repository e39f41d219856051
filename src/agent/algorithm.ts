// Algorithm 1: one trajectory of selection-based structured reasoning, in the paper's symbols.
//   s system tokens · q question tokens and pictures · h_t history · z_t inserted reasoning · a_t action · o_t observation
//   u_t = h_t ‖ z_t · h_t+ = u_t ‖ a_t · h_{t+1} = h_t+ ‖ o_t · L_t = |h_t| in positions · eta action sampling · T_max turns
import type {
  Dialect,
  Engine,
  EngineInfo,
  Question,
  Reasoner,
  Sampling,
  Span,
  Stop,
  StopStatus,
  Tokenizer,
  Turn,
  Usage,
} from '../types.js';
import type { Context } from './context.js';
import type { Harness } from './harness.js';

export interface Agent {
  readonly engine: Engine;
  readonly info: EngineInfo;
  readonly tokenizer: Tokenizer;
  readonly dialect: Dialect;
  /** s, tokenised once. */
  readonly systemIds: readonly number[];
  readonly reasoner: Reasoner;
  readonly harness: Harness;
  /** eta; its seed is replaced per turn by the trajectory's own random numbers. */
  readonly sampling: Sampling;
  /** T_max >= 1. */
  readonly maxTurns: number;
}

export interface TrajectoryOptions {
  /** Empty at the start; after a failure it holds what had been reached. */
  readonly context: Context;
  readonly random: () => number;
  readonly span: Span;
  /** Told once, what the prefill of s cost. */
  readonly onSystem: (usage: Usage) => void;
  readonly onTurn: (turn: Turn) => void;
  readonly signal?: AbortSignal;
}

/** Runs one question to its stop. Throws EngineError for surprises, never for what the model did. */
export async function runTrajectory(question: Question, agent: Agent, options: TrajectoryOptions): Promise<Stop> {
  const { engine, info, tokenizer, dialect, reasoner, harness, sampling: eta, maxTurns } = agent;
  const { context: h, random, span, onSystem, onTurn, signal } = options;
  const withSignal = signal && { signal };

  h.append(agent.systemIds); // s
  onSystem(await span('system', () => engine.prefill(h, withSignal)));
  const q = dialect.questionTurn(question);
  h.append(tokenizer.encode(q.text), q.images); // h_0 = s ‖ q

  for (let t = 0; t < maxTurns; t++) {
    const [historyLength, L] = [h.ids.length, h.length];
    const needed = L + reasoner.maxTokens + eta.maxNewTokens; // L_t + max K + eta.max_new_tokens
    if (needed > info.contextLength) {
      return stop('context-limit', `turn ${t} may need ${needed} positions, the model has ${info.contextLength}`);
    }
    const prefill = await span('prefill', () => engine.prefill(h, withSignal)); // h_t into the cache
    const sampling = { ...eta, seed: Math.floor(random() * 2 ** 32) };
    const z = await span('reasoning', () => reasoner.reason(h, sampling, random, signal)); // S_i, softmax(S/tau), select: see scoring.ts
    h.append(z.ids); // u_t = h_t ‖ z_t
    const a = await span('action', () => z.action ?? engine.generate(h, sampling, withSignal)); // a_t ~ p(. | u_t; eta)
    const ids = a.tokens.map(({ id }) => id);
    h.append(ids); // h_t+ = u_t ‖ a_t

    const actionText = tokenizer.decode(ids);
    const action = dialect.parseAction(actionText, h.images);
    const step = await harness.step(action, h.images, a.finishReason, span, signal);
    if (step.observation) h.append(step.observation.ids, step.observation.images); // h_{t+1} = h_t+ ‖ o_t
    onTurn({
      historyLength,
      historyPositions: L,
      prefill,
      reasoning: z,
      generation: a,
      actionText,
      action,
      observation: step.observation,
    });
    if (step.stop) return step.stop;
  }
  return stop('turn-limit', `no answer after ${maxTurns} turns`);
}

function stop(status: StopStatus, reason: string): Stop {
  return { status, reason, answer: null };
}
