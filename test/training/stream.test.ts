import { describe, expect, it } from 'vitest';
import { streamOf } from '../../src/cli/rollout.js';
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

  it('mixes the types of a source by their shares, and leaves others out', () => {
    const entries = ['easy', 'hard', 'other'].flatMap((type) => ids(type, 20).map((id) => ({ id, type })));
    const wiring = { benchmark: { name: 'set', split: 'train', sha256: '', entries, load: () => Promise.reject(new Error()) } };
    const other = { benchmark: { ...wiring.benchmark, entries: ids('b', 20).map((id) => ({ id, type: 'b' })) } };
    const sources = [
      { wiring, weight: 1, types: { easy: 1, hard: 3 } },
      { wiring: other, weight: 1 },
    ];
    const drawn = Array.from({ length: 20 }, (_, step) => streamOf(sources, 4, 1)(step)).flat();
    const count = (name: string) => drawn.filter(({ id }) => id.startsWith(name)).length;
    expect([count('easy'), count('hard'), count('other'), count('b')]).toEqual([10, 30, 0, 40]);
    expect(drawn.every(({ source, id }) => source === (id.startsWith('b') ? 1 : 0))).toBe(true);
    expect(() => streamOf([{ wiring, weight: 1, types: { unknown: 1 } }], 4, 1)).toThrow(
      /sources: set: no questions of this type; expected easy, hard, other, found unknown/,
    );
  });
});
