// The sampler draws from the truncated softmax it promises, and logs the probability of the untruncated one.
import { describe, expect, it } from 'vitest';
import { drawToken } from '../../../src/engines/embedded/sampler.js';
import { createRandom } from '../../../src/random.js';

const logits = Float32Array.of(1, 3, 2, 0, 2.5, -4);
const plain = { temperature: 1, topP: 1, topK: 0, bannedIds: [] };
const logNormaliser = (temperature: number) => Math.log(logits.reduce((sum, logit) => sum + Math.exp(logit / temperature), 0));

function probabilities(temperature: number): number[] {
  return [...logits].map((logit) => Math.exp(logit / temperature - logNormaliser(temperature)));
}

function frequencies(
  options: typeof plain | (Omit<typeof plain, 'bannedIds'> & { bannedIds: number[] }),
  draws = 20_000,
): number[] {
  const random = createRandom(5);
  const counts = new Array<number>(logits.length).fill(0);
  for (let draw = 0; draw < draws; draw++) {
    const { id } = drawToken(logits, options, logNormaliser, random);
    counts[id] = (counts[id] ?? 0) + 1 / draws;
  }
  return counts;
}

describe('temperature 0', () => {
  it('takes the largest logit, the first of equals, and logs it at temperature 1', () => {
    const { id, logprob } = drawToken(logits, { ...plain, temperature: 0 }, logNormaliser, Math.random);
    expect(id).toBe(1);
    expect(logprob).toBeCloseTo(Math.log(probabilities(1)[1] ?? 0), 6);
    expect(drawToken(Float32Array.of(0, 2, 2), { ...plain, temperature: 0 }, logNormaliser, Math.random).id).toBe(1);
  });

  it('passes over banned ids', () => {
    expect(drawToken(logits, { ...plain, temperature: 0, bannedIds: [1, 4] }, logNormaliser, Math.random).id).toBe(2);
  });
});

describe('a temperature above 0', () => {
  it.each([0.5, 1, 3])('draws each id as often as softmax(logits / %d) says', (temperature) => {
    const expected = probabilities(temperature);
    frequencies({ ...plain, temperature }).forEach((frequency, id) => {
      expect(Math.abs(frequency - (expected[id] ?? 0))).toBeLessThan(0.015);
    });
  });

  it('logs the probability at that temperature', () => {
    const { id, logprob } = drawToken(logits, { ...plain, temperature: 2 }, logNormaliser, createRandom(1));
    expect(logprob).toBeCloseTo(Math.log(probabilities(2)[id] ?? 0), 6);
  });

  it('repeats itself with the same seed, and not with another', () => {
    const draw = (seed: number) => {
      const random = createRandom(seed);
      return Array.from({ length: 30 }, () => drawToken(logits, plain, logNormaliser, random).id);
    };
    expect(draw(3)).toEqual(draw(3));
    expect(draw(3)).not.toEqual(draw(4));
  });
});

describe('truncation', () => {
  it('keeps the topK heaviest and their proportions', () => {
    const [, one, two, , four] = frequencies({ ...plain, topK: 3 });
    expect((one ?? 0) + (two ?? 0) + (four ?? 0)).toBeCloseTo(1, 9);
    expect((one ?? 0) / (two ?? 1)).toBeCloseTo(Math.E, 0);
  });

  it('keeps the fewest ids that hold topP', () => {
    const held = frequencies({ ...plain, topP: 0.6 }).flatMap((frequency, id) => (frequency > 0 ? [id] : []));
    expect(held).toEqual([1, 4]);
  });

  it('always keeps one id', () => {
    expect(frequencies({ ...plain, topP: 1e-9 }, 100)[1]).toBeCloseTo(1, 9);
  });

  it('never draws a banned id, and leaves the logged probability alone', () => {
    expect(frequencies({ ...plain, bannedIds: [1] })[1]).toBe(0);
    const { id, logprob } = drawToken(logits, { ...plain, bannedIds: [1] }, logNormaliser, createRandom(2));
    expect(logprob).toBeCloseTo(Math.log(probabilities(1)[id] ?? 0), 6);
  });
});
