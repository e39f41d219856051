// Which questions a step asks: each source is read in seeded epochs, sources are mixed by weight, and the questions of step n depend
// on the seed and n alone, so that a resumed run asks what an unbroken one would.
import { UsageError } from '../errors.js';
import { createRandom, deriveSeed } from '../random.js';

export interface StreamSource {
  readonly ids: readonly string[];
  /** Share of the questions, relative to the other sources. */
  readonly weight: number;
}

export interface DrawnQuestion {
  readonly source: number;
  readonly id: string;
}

/** Throws UsageError when there is nothing to draw from, or more questions a step than the sources have. */
export function createStream(sources: readonly StreamSource[], perStep: number, seed: number): (step: number) => DrawnQuestion[] {
  const total = sources.reduce((sum, { weight }) => sum + weight, 0);
  const empty = sources.findIndex(({ ids, weight }) => weight > 0 && ids.length < perStep);
  if (!(total > 0) || empty !== -1) {
    throw new UsageError('too few training questions', {
      expected: `at least ${perStep} in each source, and a weight above 0`,
      found: empty === -1 ? 'no weight' : `${sources[empty]?.ids.length} in source ${empty}`,
    });
  }
  const shuffled = new Map<string, readonly number[]>();
  const order = (source: number, epoch: number): readonly number[] => {
    const key = `${source}/${epoch}`;
    const known = shuffled.get(key) ?? permutation(sources[source]?.ids.length ?? 0, deriveSeed(seed, 'epoch', key));
    shuffled.set(key, known);
    return known;
  };
  const quotas = sources.map(({ weight }) => (perStep * weight) / total);
  return (step) =>
    sources.flatMap(({ ids }, source) => {
      // Cumulative rounding: after any number of steps each source has had its share, to one question.
      const share = quotas.slice(0, source + 1).reduce((sum, quota) => sum + quota, 0);
      const before = share - (quotas[source] ?? 0);
      const asked = (steps: number): number => Math.round(steps * share) - Math.round(steps * before);
      return Array.from({ length: asked(step + 1) - asked(step) }, (_, i) => {
        const position = asked(step) + i;
        const epoch = Math.floor(position / ids.length);
        return { source, id: ids[order(source, epoch)[position % ids.length] ?? 0] ?? '' };
      });
    });
}

/** Fisher and Yates. */
function permutation(length: number, seed: number): number[] {
  const random = createRandom(seed);
  const order = Array.from({ length }, (_, i) => i);
  for (let i = length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    [order[i], order[j]] = [order[j] as number, order[i] as number];
  }
  return order;
}
