import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { parseJson, parseJsonLines } from '../../src/data/json.js';
import { DataError } from '../../src/errors.js';

const schema = z.object({ id: z.string(), tags: z.array(z.string()) });

describe('JSON Lines', () => {
  it('reads one record a line and skips blank lines, with either line ending', () => {
    expect(parseJsonLines('{"id":"a","tags":[]}\r\n\n{"id":"b","tags":["x"]}\n', schema, 'f')).toEqual([
      { id: 'a', tags: [] },
      { id: 'b', tags: ['x'] },
    ]);
    expect(parseJsonLines('', schema, 'f')).toEqual([]);
  });

  it('names file, line and field of a wrong value', () => {
    const source = '{"id":"a","tags":[]}\n\n{"id":"b","tags":["x",7]}\n';
    expect(() => parseJsonLines(source, schema, 'data/index.jsonl')).toThrow(DataError);
    expect(() => parseJsonLines(source, schema, 'data/index.jsonl')).toThrow(/^data\/index\.jsonl:3: field tags\.1: .*string/);
  });

  it('names file and line of a torn line', () => {
    expect(() => parseJsonLines('{"id":"a","tags":[]}\n{"id":"b"', schema, 'index.jsonl')).toThrow(
      /^index\.jsonl:2: not JSON, found /,
    );
  });
});

describe('JSON', () => {
  it('names the field of a wrong value, or the file for a wrong kind of value', () => {
    expect(() => parseJson('{"id":"a"}', schema, 'm.json')).toThrow(/^m\.json: field tags: /);
    expect(() => parseJson('3', schema, 'm.json')).toThrow(/^m\.json: [^f].*object/);
  });
});
