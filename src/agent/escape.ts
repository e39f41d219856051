// Outside text (questions, search results, page text) must not be able to spell what only the harness may say.

/** Structural tags of the agent formats; a closing one inside a result would end the observation early. */
const TAG =
  /<((?:\/\s*)?(?:thinking|think|reason|answer|tool_call|tool_response|tools|information|search|text_search|grounding|image|img)\b)/gi;
// Nothing a reader could see: control characters, soft hyphens and joiners, bidirectional controls, zero-width characters, tag characters.
const INVISIBLE =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is removed here
  /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]|\u034f/gu;

/**
 * Text from outside, harmless: no added token of the tokenizer, no structural tag, no invisible or unpaired characters.
 * A space behind `<` (or behind a token's first character) breaks a forged token and keeps the text readable. What is removed goes
 * first, so that nothing can be hidden between the characters of a token.
 */
export function escapeOutsideText(text: string, addedTokens: readonly string[]): string {
  const visible = text.toWellFormed().replace(INVISIBLE, '').normalize('NFC');
  let safe = visible.replace(TAG, '< $1').replaceAll('<|', '< |');
  for (const token of addedTokens) {
    // A token of white space is no marker, and a space would not break it.
    if (token.length > 1 && token.trim() !== '') safe = breakToken(safe, token);
  }
  return safe;
}

/** Until none is left: breaking one occurrence can complete another that overlaps it (`aab` in `aaab`). */
function breakToken(text: string, token: string): string {
  const [first = ''] = token;
  let safe = text;
  while (safe.includes(token)) safe = safe.replaceAll(token, `${first} ${token.slice(first.length)}`);
  return safe;
}
