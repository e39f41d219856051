import { describe, expect, it } from 'vitest';
import { createStream } from '../../src/training/stream.js';

const ids = (name: string, count: number): string[] => Array.from({ length: count }, (_, i) => `${name}${i}`);

describe('the stream of training questions', () => {
  it('gives a step the same questions again, whatever was asked between', () => {
    const one = createStream([{ ids: ids('a', 20), weight: 1 }], 4, 5);
    const other = createStream([{ ids: ids('a', 20), weight: 1 }], 4, 5);
    one(0);
    one(7);
    expect(one(3)).toEqual(other(3));
    expect(createStream([{ ids: ids('a', 20), weight: 1 }], 4, 6)(3)).not.toEqual(other(3));
  });

  it('asks every question once per epoch', () => {
    const stream = createStream([{ ids: ids('a', 12), weight: 1 }], 4, 1);
    const epoch = [0, 1, 2].flatMap((step) => stream(step).map(({ id }) => id));
    const next = [3, 4, 5].flatMap((step) => stream(step).map(({ id }) => id));
    expect(new Set(epoch)).toEqual(new Set(ids('a', 12)));
    expect(new Set(next)).toEqual(new Set(ids('a', 12)));
    expect(next).not.toEqual(epoch);
  });

  it('mixes sources by weight, a whole step at a time', () => {
    const sources = [
      { ids: ids('a', 30), weight: 3 },
      { ids: ids('b', 30), weight: 1 },
      { ids: ids('c', 30), weight: 1 },
    ];
    const stream = createStream(sources, 4, 1);
    const drawn = Array.from({ length: 25 }, (_, step) => stream(step));
    expect(drawn.every((questions) => questions.length === 4)).toBe(true);
    const counts = [0, 1, 2].map((source) => drawn.flat().filter((question) => question.source === source).length);
    expect(counts).toEqual([60, 20, 20]);
  });

  it('refuses sources that cannot fill a step', () => {
    expect(() => createStream([{ ids: ids('a', 3), weight: 1 }], 4, 1)).toThrow(
      /too few training questions; expected at least 4/,
    );
    expect(() => createStream([], 4, 1)).toThrow(/too few training questions/);
  });
});
