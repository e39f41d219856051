import { describe, expect, it } from 'vitest';
import { parseAction } from '../../src/agent/actions.js';

const call = (json: string): string => `<tool_call>${json}</tool_call>`;
const zoom = (args: string): string => call(`{"name": "image_zoom_in_tool", "arguments": ${args}}`);

describe('parseAction', () => {
  it('reads the four actions', () => {
    expect(parseAction('<answer> Oslo </answer>', 1)).toEqual({ kind: 'answer', text: 'Oslo' });
    expect(parseAction(call('{"name": "image_search_tool", "arguments": {}}'), 1)).toEqual({ kind: 'image_search_tool' });
    expect(parseAction(call('\n{"name": "text_search_tool", "arguments": {"query": "city of X"}}\n'), 1)).toEqual({
      kind: 'text_search_tool',
      query: 'city of X',
    });
    expect(parseAction(zoom('{"bbox_2d": [0, 250.5, 250, 1000], "label": "tile", "img_idx": 1}'), 2)).toEqual({
      kind: 'image_zoom_in_tool',
      box: [0, 250.5, 250, 1000],
      label: 'tile',
      imageIndex: 1,
    });
  });

  it.each([
    ['nothing', '', 'neither one'],
    ['plain text', 'Oslo', 'neither one'],
    ['text before', 'So: <answer>Oslo</answer>', 'neither one'],
    ['text after', '<answer>Oslo</answer> done', 'neither one'],
    ['an open answer', '<answer>Oslo', 'neither one'],
    ['a blank answer', '<answer> \n</answer>', 'blank answer'],
    ['two answers', '<answer>Oslo</answer><answer>Rome</answer>', 'tag inside'],
    ['an answer around a call', '<answer><tool_call>{}</tool_call></answer>', 'tag inside'],
    ['two calls', `${call('{}')}${call('{}')}`, 'not JSON'],
    ['broken JSON', call('{"name": '), 'not JSON'],
    ['an unknown tool', call('{"name": "shell", "arguments": {}}'), 'name'],
    ['a missing key', call('{"name": "image_search_tool"}'), 'arguments'],
    ['a third key', call('{"name": "image_search_tool", "arguments": {}, "id": 1}'), 'id'],
    ['an unknown argument', call('{"name": "image_search_tool", "arguments": {"query": "x"}}'), 'query'],
    ['arguments as a string', call('{"name": "text_search_tool", "arguments": ""}'), 'arguments'],
    ['a blank query', call('{"name": "text_search_tool", "arguments": {"query": "  "}}'), 'blank'],
    ['a long query', call(`{"name": "text_search_tool", "arguments": {"query": "${'x'.repeat(2001)}"}}`), 'query'],
    ['three numbers', zoom('{"bbox_2d": [0, 0, 1], "label": "a", "img_idx": 0}'), 'bbox_2d'],
    ['a boolean', zoom('{"bbox_2d": [0, 0, true, 1], "label": "a", "img_idx": 0}'), 'bbox_2d'],
    ['a number over 1000', zoom('{"bbox_2d": [0, 0, 1001, 1], "label": "a", "img_idx": 0}'), 'bbox_2d'],
    ['a negative number', zoom('{"bbox_2d": [-1, 0, 10, 1], "label": "a", "img_idx": 0}'), 'bbox_2d'],
    ['an empty box', zoom('{"bbox_2d": [10, 0, 10, 1], "label": "a", "img_idx": 0}'), 'x1 < x2'],
    ['a fractional index', zoom('{"bbox_2d": [0, 0, 10, 1], "label": "a", "img_idx": 0.5}'), 'img_idx'],
    ['an index too high', zoom('{"bbox_2d": [0, 0, 10, 1], "label": "a", "img_idx": 1}'), 'img_idx 1 of 1'],
    ['a missing label', zoom('{"bbox_2d": [0, 0, 10, 1], "img_idx": 0}'), 'label'],
  ])('refuses %s and says why', (_, text, reason) => {
    const action = parseAction(text, 1);
    expect(action.kind).toBe('invalid');
    expect(action.kind === 'invalid' && action.reason).toContain(reason);
  });
});
