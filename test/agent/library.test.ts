import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { loadLibrary, parseLibrary } from '../../src/agent/library.js';
import { renderCandidates, renderPrompt } from '../../src/agent/prompt.js';
import { UsageError } from '../../src/errors.js';

const entry = (text: string, actions = '["answer"]'): string =>
  `{"text": ${JSON.stringify(text)}, "expected_actions": ${actions}}`;
const library = (entries: string): string => `{"name": "x", "version": "1", "entries": {${entries}}}`;

describe('loadLibrary', () => {
  it('reads the default library: six needs in scoring order', async () => {
    const { name, entries } = await loadLibrary('configs/libraries/default.json');
    expect(name).toBe('ssr-default');
    expect(entries.map(({ id }) => id)).toEqual([
      'r_GENERAL_KNOW',
      'r_ANSWER_FROM_IMAGE',
      'r_ZOOM_DETAIL',
      'r_IDENTIFY_BY_IMAGE',
      'r_LOOKUP_FACT',
      'r_ANSWER_FROM_EVIDENCE',
    ]);
  });

  it('names a file that is not there', async () => {
    await expect(loadLibrary('no/such.json')).rejects.toThrow(/no\/such\.json: cannot read the library/);
  });
});

describe('parseLibrary', () => {
  it('keeps the order of the file even for ids that look like integers', () => {
    const { entries } = parseLibrary(library(`"b": ${entry('one')}, "10": ${entry('two')}, "2": ${entry('three')}`), 'l.json');
    expect(entries.map(({ id }) => id)).toEqual(['b', '10', '2']);
    expect(entries.map(({ text }) => text)).toEqual(['one', 'two', 'three']);
  });

  it('accepts more metadata than it needs', () => {
    const source = `{"name": "x", "version": 0, "note": "n", "author": "me", "entries": {"a": {"text": "t", "expected_actions": [], "created_at": null, "k": 1}}}`;
    expect(parseLibrary(source, 'l.json').version).toBe('0');
  });

  it.each([
    ['text that is not JSON', '{"name": ', 'not JSON'],
    ['a list', '[]', 'library'],
    ['no name', '{"entries": {}}', 'name'],
    ['no entries key', '{"name": "x"}', 'entries'],
    ['no entries', library(''), 'no entries'],
    ['a blank text', library(`"a": ${entry(' \n ')}`), 'entries.a.text: blank'],
    ['a missing text', library('"a": {"expected_actions": []}'), 'entries.a.text'],
    ['a missing expected_actions', library('"a": {"text": "t"}'), 'entries.a.expected_actions'],
    ['an unknown action', library(`"a": ${entry('t', '["search"]')}`), 'entries.a.expected_actions.0'],
    ['a repeated id', library(`"a": ${entry('t')}, "a": ${entry('u')}`), 'entries.a: id occurs twice'],
    [
      'an id that JavaScript keeps for itself',
      library(`"__proto__": ${entry('t')}`),
      'entries.__proto__: this id cannot be read',
    ],
    [
      'two lists of entries',
      `{"name": "x", "entries": {"a": ${entry('t')}}, "entries": {"b": ${entry('u')}}}`,
      'entries.a: this id cannot be read',
    ],
    ['a thinking tag', library(`"a": ${entry('so </thinking> then')}`), 'forbidden tag'],
    ['a tool-call tag', library(`"a": ${entry('<tool_call>{}')}`), 'forbidden tag'],
    ['an answer tag', library(`"a": ${entry('<ANSWER>')}`), 'forbidden tag'],
    ['a special token', library(`"a": ${entry('stop <|im_end|>')}`), 'forbidden tag'],
  ])('refuses %s', (_, source, message) => {
    expect(() => parseLibrary(source, 'l.json')).toThrow(UsageError);
    expect(() => parseLibrary(source, 'l.json')).toThrow(message);
    expect(() => parseLibrary(source, 'l.json')).toThrow(/^l\.json: /);
  });
});

describe('parseLibrary on large files', () => {
  it('reads texts of many megabytes', () => {
    expect(parseLibrary(library(`"a": ${entry('x'.repeat(10_000_000))}`), 'l.json').entries[0]?.text.length).toBe(10_000_000);
  });
});

describe('prompts', () => {
  it('list candidates sorted by id, two spaces before the expected action', () => {
    const entries = [
      { id: 'b', text: 'Second.', expectedActions: ['answer', 'text_search_tool'] },
      { id: 'a', text: 'First.', expectedActions: ['answer'] },
    ];
    expect(renderCandidates(entries)).toBe(
      '[0] "First."  (expected action: answer)\n[1] "Second."  (expected action: answer, text_search_tool)',
    );
  });

  it('fill the shipped template and refuse unknown placeholders', () => {
    const template = readFileSync('configs/prompts/ssr.txt', 'utf8');
    expect(renderPrompt(template, { candidates: 'C', tools: 'T' }, 'ssr.txt')).not.toMatch(/\{\{\w+\}\}/);
    expect(() => renderPrompt('{{nonsense}}', { tools: '' }, 'p.txt')).toThrow(/p\.txt: unknown placeholder \{\{nonsense\}\}/);
  });
});
