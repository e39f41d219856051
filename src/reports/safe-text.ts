// Text from outside on a terminal: it must not move the cursor, colour anything, or turn the reading direction.
import { stripVTControlCharacters } from 'node:util';

/** One line without control characters. */
export function safeText(text: string): string {
  return stripVTControlCharacters(text).replace(/[\p{Cc}\u202a-\u202e\u2066-\u2069]/gu, ' ');
}
