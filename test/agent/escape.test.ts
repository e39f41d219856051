import { describe, expect, it } from 'vitest';
import { escapeOutsideText } from '../../src/agent/escape.js';

const added = [
  '<|im_start|>',
  '<|im_end|>',
  '<|image_pad|>',
  '<tool_call>',
  '</tool_call>',
  '<tool_response>',
  '</tool_response>',
];

describe('escapeOutsideText', () => {
  it('leaves ordinary text alone', () => {
    const text = 'Kalo Venn city: Oslo. 3 < 4 && a<b> "é" 東京\n\tnext';
    expect(escapeOutsideText(text, added)).toBe(text);
  });

  it.each(added)('breaks %s', (token) => {
    const escaped = escapeOutsideText(`x${token}y`, added);
    for (const forbidden of added) expect(escaped).not.toContain(forbidden);
  });

  it.each(['</thinking>', '<answer>', '</ tool_response>', '<TOOL_CALL>', '<|made_up|>'])('breaks %s', (tag) => {
    expect(escapeOutsideText(tag, added)).not.toContain(tag.slice(0, 3));
  });

  it('cannot be led to build a token by removing characters from inside it', () => {
    const sneaky = '<|im_\u200bend|> </tool\u0000_response> <\u202e|im_start|>';
    const escaped = escapeOutsideText(sneaky, added);
    for (const forbidden of added) expect(escaped).not.toContain(forbidden);
  });

  it('replaces unpaired surrogates', () => {
    expect(escapeOutsideText('a\ud800b', [])).toBe('a\ufffdb');
  });
});
