// Outside text (questions, search results, page text) must not be able to spell what only the harness may say.

/** Structural tags of the agent formats; a closing one inside a result would end the observation early. */
const TAG = /<(\/?\s*(?:thinking|think|reason|answer|tool_call|tool_response|information|search)\b)/gi;
// NUL and other control characters, bidirectional controls, zero-width characters: nothing a reader could see.
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is removed here
const INVISIBLE = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g;

/**
 * Text from outside, harmless: no added token of the tokenizer, no structural tag, no invisible or unpaired characters.
 * A space behind `<` (or behind a token's first character) breaks a forged token and keeps the text readable.
 */
export function escapeOutsideText(text: string, addedTokens: readonly string[]): string {
  let safe = text.toWellFormed().normalize('NFC').replace(INVISIBLE, '').replace(TAG, '< $1').replaceAll('<|', '< |');
  for (const token of addedTokens) {
    if (token.length > 1) safe = safe.replaceAll(token, `${token[0]} ${token.slice(1)}`);
  }
  return safe;
}
