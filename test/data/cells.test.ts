import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { base64Picture, goldAnswers, idCell, parseAliases, parseRow, withoutImageMarks } from '../../src/data/cells.js';

describe('cells of source rows', () => {
  it('keep 64-bit ids whole', () => {
    expect(idCell.parse(9007199254740993n)).toBe('9007199254740993');
    expect(idCell.parse(7)).toBe('7');
    expect(idCell.safeParse('').success).toBe(false);
  });

  it('read base64 with and without an address, and nothing else', () => {
    const bytes = Buffer.from([255, 216, 255, 0, 1]);
    for (const text of [
      bytes.toString('base64'),
      `data:image/jpeg;base64,${bytes.toString('base64')}`,
      '/9j/\nAAE=',
      '/9j/AAE',
    ]) {
      expect(base64Picture(text)).toEqual({ kind: 'bytes', bytes });
    }
    for (const text of ['', 'data:image/jpeg;base64,', 'not base64!', '/9j/*AAE='])
      expect(base64Picture(text).kind).toBe('missing');
  });

  it('read aliases from a list in a string', () => {
    expect(parseAliases('["a", {"range": [1, 2]}, "b", 3]')).toEqual({ answers: ['a', 'b'], others: [{ range: [1, 2] }, 3] });
    expect(parseAliases(' ')).toEqual({ answers: [], others: [] });
    expect(parseAliases('{"a": 1}')).toBeNull();
    expect(parseAliases("['a']")).toBeNull();
  });

  it('keep every different answer once, the gold first', () => {
    expect(goldAnswers(' Unicorn  ', 'unicorn', 'Unicorn', '', null, undefined)).toEqual(['Unicorn', 'unicorn']);
  });

  it('strip picture marks in front of a question only', () => {
    expect(withoutImageMarks('<image>\n <image>What does <image> mean? ')).toBe('What does <image> mean?');
  });

  it('name the row, the column and what the row looks like', () => {
    const schema = z.object({ query: z.string(), image: z.object({ bytes: z.instanceof(Uint8Array) }) });
    expect(() => parseRow(schema, { query: 'q', image: { bytes: 'text' }, n: 1n }, { file: 'a.parquet', row: 3 })).toThrow(
      /^a\.parquet, row 3: column image\.bytes: .*found query: string, image: object, n: bigint/,
    );
  });
});
