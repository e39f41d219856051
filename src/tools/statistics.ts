// What a run asked of its tools, per provider and step: calls, hits, outcomes, time and cost.
import type { ProviderKind } from './provider.js';

export type Step = 'search' | 'fetch' | 'summary' | 'thumbnail' | 'upload';
export type Outcome = 'answered' | 'empty' | 'failed';

export interface ToolCall {
  readonly provider: string;
  readonly step: Step;
  readonly outcome: Outcome;
  /** Answered by the recording, or by an equal call that was under way. */
  readonly hit: boolean;
  readonly latencyMs: number;
}

export interface StepStatistics {
  readonly provider: string;
  readonly step: Step;
  readonly calls: number;
  readonly hits: number;
  readonly answered: number;
  readonly empty: number;
  readonly failed: number;
  /** answered / calls: an empty answer worked, but a search layer that answers nothing is not healthy. */
  readonly successRate: number;
  /** Mean over the calls that were really made; null without one. */
  readonly meanLatencyMs: number | null;
}

export interface PaidStatistics {
  readonly provider: string;
  readonly paidCalls: number;
  /** In the unit of the configured prices; null where none is configured. */
  readonly cost: number | null;
}

export interface ToolStatistics {
  readonly steps: readonly StepStatistics[];
  readonly paid: readonly PaidStatistics[];
  /** Over all steps; null without a call. */
  readonly successRate: number | null;
}

export interface Counter {
  add(call: ToolCall): void;
  result(paidCalls: ReadonlyMap<string, number>, prices: Readonly<Record<string, number>>): ToolStatistics;
}

export function stepOf(kind: ProviderKind): Step {
  switch (kind) {
    case 'text-search':
    case 'image-search':
      return 'search';
    case 'page':
      return 'fetch';
    default:
      return kind;
  }
}

export function createCounter(): Counter {
  const calls: ToolCall[] = [];
  return {
    add: (call) => void calls.push(call),
    result: (paidCalls, prices) => ({
      steps: [...groupByStep(calls).values()].map(summarise),
      paid: [...paidCalls].map(([provider, count]) => ({ provider, paidCalls: count, cost: costOf(count, prices[provider]) })),
      successRate: calls.length === 0 ? null : share(calls, ({ outcome }) => outcome === 'answered'),
    }),
  };
}

function groupByStep(calls: readonly ToolCall[]): Map<string, ToolCall[]> {
  const groups = new Map<string, ToolCall[]>();
  for (const call of calls) {
    const name = `${call.provider}\n${call.step}`;
    const group = groups.get(name);
    if (group) group.push(call);
    else groups.set(name, [call]);
  }
  return groups;
}

function summarise(calls: readonly ToolCall[]): StepStatistics {
  const [first] = calls as [ToolCall, ...ToolCall[]];
  const count = (wanted: Outcome): number => calls.filter(({ outcome }) => outcome === wanted).length;
  const made = calls.filter(({ hit }) => !hit);
  return {
    provider: first.provider,
    step: first.step,
    calls: calls.length,
    hits: calls.length - made.length,
    answered: count('answered'),
    empty: count('empty'),
    failed: count('failed'),
    successRate: count('answered') / calls.length,
    meanLatencyMs: made.length === 0 ? null : made.reduce((sum, { latencyMs }) => sum + latencyMs, 0) / made.length,
  };
}

function share<T>(items: readonly T[], holds: (item: T) => boolean): number {
  return items.filter(holds).length / items.length;
}

function costOf(calls: number, price: number | undefined): number | null {
  return price === undefined ? null : calls * price;
}
