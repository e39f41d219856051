// Which questions a run asks: all, the first n, a named list, or a seeded sample stratified by type.
import { UsageError } from '../errors.js';
import { deriveSeed } from '../random.js';
import type { Benchmark } from '../types.js';

type Entries = Benchmark['entries'];

export interface PlanOptions {
  readonly ids?: readonly string[];
  readonly limit?: number;
  readonly sample?: number;
  readonly seed: number;
}

/** The plan in the benchmark's order. Throws UsageError for an unknown or repeated id and for an empty plan. */
export function planQuestions(entries: Entries, { ids, limit, sample, seed }: PlanOptions): Entries {
  let plan = ids === undefined ? entries : named(entries, ids);
  if (limit !== undefined) plan = plan.slice(0, limit);
  if (sample !== undefined) plan = stratified(plan, sample, seed);
  if (plan.length === 0) throw new UsageError('no question to ask', { expected: 'at least one question in the plan' });
  return plan;
}

function named(entries: Entries, ids: readonly string[]): Entries {
  const wanted = new Set(ids);
  const repeated = ids.find((id, i) => ids.indexOf(id) !== i);
  if (repeated !== undefined) throw new UsageError('id listed twice', { where: '--ids', found: repeated });
  const plan = entries.filter(({ id }) => wanted.delete(id));
  const [unknown] = wanted;
  if (unknown !== undefined) {
    throw new UsageError('the benchmark has no such question', {
      where: '--ids',
      found: unknown,
      expected: `ids such as ${entries[0]?.id ?? '(none)'}`,
    });
  }
  return plan;
}

/**
 * Each type gets its share of n by largest remainder; within a type the order is a hash of seed and id, so that a larger
 * sample with the same seed contains nearly all of a smaller one, and other questions of the benchmark do not matter.
 */
function stratified(entries: Entries, size: number, seed: number): Entries {
  if (size >= entries.length) return entries;
  const byType = new Map<string, Entries[number][]>();
  for (const entry of entries) {
    const members = byType.get(entry.type);
    if (members) members.push(entry);
    else byType.set(entry.type, [entry]);
  }
  const quotas = [...byType].map(([type, members]) => ({ type, exact: (size * members.length) / entries.length }));
  let left = size - quotas.reduce((sum, { exact }) => sum + Math.floor(exact), 0);
  const byRemainder = [...quotas].sort((a, b) => (b.exact % 1) - (a.exact % 1));
  const chosen = new Set<string>();
  for (const { type, exact } of byRemainder) {
    const count = Math.floor(exact) + (left-- > 0 ? 1 : 0);
    const ranked = [...(byType.get(type) ?? [])].sort((a, b) => deriveSeed(seed, a.id) - deriveSeed(seed, b.id));
    for (const { id } of ranked.slice(0, count)) chosen.add(id);
  }
  return entries.filter(({ id }) => chosen.has(id));
}
