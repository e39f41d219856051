// Unlike things are not compared: every condition that two arms must share is refused by its name, or named beside the figures.
import { UsageError } from '../errors.js';
import type { Arm, ArmRun, Facts } from './compare-outcome.js';

export type Condition = Exclude<keyof Facts, 'other'>;

const MEANING: Readonly<Record<Condition, string>> = {
  data: 'benchmark data (name, split, hash)',
  questions: 'questions of the plan',
  judge: 'judge',
  model: 'weights of the model',
  engine: 'engine and its version',
  tools: 'tools and their settings',
  cache: 'cache conditions',
  load: 'questions in flight',
  machine: 'machine',
};

export const conditions = Object.keys(MEANING) as Condition[];

/** A difference that the caller has allowed, or that needs no permission. */
export interface Difference {
  readonly benchmark: string;
  readonly condition: string;
  readonly reference: string;
  readonly arm: string;
}

/**
 * The differences of an arm from the reference. Throws UsageError naming the first one that is not in `allowed`, and for
 * arms that did not run the same benchmarks.
 */
export function requireAlike(reference: Arm, arm: Arm, allowed: readonly Condition[]): Difference[] {
  const [wanted, found] = [reference, arm].map(({ runs }) => runs.map(({ benchmark }) => benchmark).sort());
  if (String(wanted) !== String(found)) {
    throw new UsageError('the arms ran different benchmarks', {
      where: `${reference.name} and ${arm.name}`,
      expected: wanted?.join(', ') ?? '',
      found: found?.join(', ') ?? '',
    });
  }
  return reference.runs.flatMap((run) => {
    const other = arm.runs.find(({ benchmark }) => benchmark === run.benchmark) as ArmRun;
    return [...strict(reference, arm, run, other, allowed), ...free(run, other)];
  });
}

function strict(reference: Arm, arm: Arm, a: ArmRun, b: ArmRun, allowed: readonly Condition[]): Difference[] {
  const differing = conditions.filter((condition) => a.facts[condition] !== b.facts[condition]);
  for (const condition of differing) {
    if (allowed.includes(condition)) continue;
    throw new UsageError(`cannot compare: ${condition} differs (${MEANING[condition]})`, {
      where: `${reference.name} and ${arm.name} on ${a.benchmark}`,
      expected: a.facts[condition],
      found: b.facts[condition],
      remedy: `Run both alike, or say that the difference is meant: --allow ${condition}`,
    });
  }
  return differing.map((condition) => ({
    benchmark: a.benchmark,
    condition,
    reference: a.facts[condition],
    arm: b.facts[condition],
  }));
}

function free(a: ArmRun, b: ArmRun): Difference[] {
  const names = [...new Set([...Object.keys(a.facts.other), ...Object.keys(b.facts.other)])];
  return names
    .filter((name) => a.facts.other[name] !== b.facts.other[name])
    .map((name) => ({
      benchmark: a.benchmark,
      condition: name,
      reference: a.facts.other[name] ?? 'none',
      arm: b.facts.other[name] ?? 'none',
    }));
}

/**
 * Arms whose questions began on a cache that somebody else had warmed: their times are not those of the arm alone. A
 * question's own system prompt is shared by design and does not count.
 */
export function warmArms(arms: readonly Arm[]): { readonly arm: string; readonly questions: number; readonly n: number }[] {
  return arms.flatMap(({ name, runs }) => {
    const outcomes = runs.flatMap((run) => [...run.outcomes.values()]);
    const questions = outcomes.filter(({ warm }) => warm).length;
    return questions === 0 ? [] : [{ arm: name, questions, n: outcomes.length }];
  });
}
