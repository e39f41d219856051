// The loop of Algorithm 2: rollout → reward → step → weights to the engine → next. Everything it works with is handed in.
import type { Rate } from '../evaluation/statistics.js';
import type { Engine } from '../types.js';
import { type RolloutFigures, rolloutFigures } from './progress.js';
import type { RolledOut } from './rollout.js';
import type { Position, StepReply } from './trainer-process.js';

/** Puts weights under the engine. After `serve` no cache that depends on older weights is left; see docs/training.md. */
export interface HandOver {
  serve(position: Position): Promise<Engine>;
  close(): Promise<void>;
}

export interface LoopParts {
  readonly trainer: { readonly start: Position; step(folder: string): Promise<StepReply> };
  readonly handOver: HandOver;
  rollOut(engine: Engine, step: number): Promise<RolledOut>;
  /** Writes the minibatch and returns its folder. */
  store(rolledOut: RolledOut): Promise<string>;
  /** Success on the fixed held-out questions; what a run that is continued has measured at this step already is not measured again. */
  evaluate(engine: Engine, step: number): Promise<Rate>;
  keepBest(position: Position, success: Rate): Promise<void>;
  readonly clock: () => number;
}

export interface LoopSettings {
  readonly steps: number;
  /** Steps between two evaluations; the first and the last weights are always evaluated. */
  readonly evaluateEvery: number;
  /** Stop when held-out success falls below this share of the best so far. */
  readonly collapse: number;
}

/** What happened at one set of weights: evaluation where due, then the rollouts and the step they made. */
export interface StepRecord {
  readonly step: number;
  readonly heldOut: Rate | null;
  /** Null for the last weights, which nothing is rolled out with. */
  readonly rollout: RolloutFigures | null;
  readonly metrics: Readonly<Record<string, number>>;
  readonly secondsPerPhase: Readonly<Record<string, number>>;
}

export type LoopEnd = { readonly kind: 'finished' } | { readonly kind: 'diverged'; readonly reason: string };

/** Yields a record per step, and returns why it ended. On divergence the best weights and the last good ones are on disk. */
export async function* conduct(
  parts: LoopParts,
  settings: LoopSettings,
  best: { rate: number } = { rate: 0 },
): AsyncGenerator<StepRecord, LoopEnd> {
  let position = parts.trainer.start;
  for (;;) {
    const seconds: Record<string, number> = {};
    const timed = async <T>(phase: string, run: () => Promise<T>): Promise<T> => {
      const started = parts.clock();
      const value = await run();
      seconds[phase] = (parts.clock() - started) / 1000;
      return value;
    };
    const { step } = position;
    const last = step >= settings.steps;
    const engine = await timed('load', () => parts.handOver.serve(position));
    const due = last || step % settings.evaluateEvery === 0;
    const heldOut = due ? await timed('evaluate', () => parts.evaluate(engine, step)) : null;
    const rate = heldOut?.rate ?? null;
    if (heldOut !== null && rate !== null && rate > best.rate) {
      best.rate = rate;
      await parts.keepBest(position, heldOut);
    }
    if (last) {
      yield { step, heldOut, rollout: null, metrics: {}, secondsPerPhase: seconds };
      return { kind: 'finished' };
    }
    if (rate !== null && rate < settings.collapse * best.rate) {
      yield { step, heldOut, rollout: null, metrics: {}, secondsPerPhase: seconds };
      return { kind: 'diverged', reason: `held-out success fell to ${rate.toFixed(3)}, the best was ${best.rate.toFixed(3)}` };
    }
    const rolledOut = await timed('rollout', () => parts.rollOut(engine, step));
    const folder = await timed('store', () => parts.store(rolledOut));
    const reply = await parts.trainer.step(folder);
    if (reply.kind === 'diverged') return { kind: 'diverged', reason: reply.reason };
    yield {
      step,
      heldOut,
      rollout: rolloutFigures(rolledOut),
      metrics: reply.metrics,
      secondsPerPhase: { ...seconds, ...reply.seconds },
    };
    position = reply;
  }
}
