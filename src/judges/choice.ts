// Multiple choice: the right letter in any dress, or the right option's own words.
import { normaliseText, sameText } from './text.js';

/**
 * Whether `answer` names the option `gold`, a single letter, among those that the question lists as (A) … or A. … from A onwards.
 * A letter with other words behind it than its option's is no choice.
 */
export function choosesOption(question: string, answer: string, gold: string): boolean {
  const wanted = /^\(?([a-h])\)?$/.exec(normaliseText(gold))?.[1];
  if (wanted === undefined) return false;
  const options = optionsOf(question);
  return options.has(wanted) && chosenLetter(answer, options) === wanted;
}

/** Texts by letter; empty unless letters follow each other from A and there are at least two. */
function optionsOf(question: string): ReadonlyMap<string, string> {
  const found = [...question.matchAll(/\(([A-H])\)\s*([^\n(]+)/g), ...question.matchAll(/^\s*([A-H])[.:)]\s*(.+)$/gm)];
  const options = new Map<string, string>();
  for (const [, letter = '', text = ''] of found) {
    if (letter.charCodeAt(0) !== 65 + options.size) continue;
    options.set(letter.toLowerCase(), text.trim());
  }
  return options.size >= 2 ? options : new Map();
}

function chosenLetter(answer: string, options: ReadonlyMap<string, string>): string | null {
  const words = normaliseText(answer);
  const [, letter, rest] = /^(?:(?:option|answer|choice)(?: is)?:? )?\(?([a-h])(?:[).:]+| |$)\s*(.*)$/.exec(words) ?? [];
  if (letter !== undefined && (rest === '' || sameText(rest ?? '', options.get(letter) ?? ''))) return letter;
  const alike = [...options].filter(([, text]) => sameText(answer, text));
  return alike.length === 1 ? (alike[0]?.[0] ?? null) : null;
}
