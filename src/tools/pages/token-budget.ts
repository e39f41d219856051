// Cutting page text to a number of tokens, at a word boundary.

/** Tokens of a text, as the model that will read it counts. */
export type CountTokens = (text: string) => number;

/** The longest beginning of `text` within the budget (found by halving; a token is at least one character). */
export function cutToTokens(text: string, budget: number, countTokens: CountTokens): string {
  // No tokenizer packs more than about 16 characters of running text into a token: what lies beyond need not be counted.
  const candidate = text.slice(0, budget * 16);
  if (countTokens(candidate) <= budget) return candidate.length === text.length ? text : atWord(candidate);
  let [fits, exceeds] = [0, candidate.length];
  while (exceeds - fits > 1) {
    const middle = Math.floor((fits + exceeds) / 2);
    if (countTokens(candidate.slice(0, middle)) <= budget) fits = middle;
    else exceeds = middle;
  }
  return atWord(candidate.slice(0, fits));
}

/** Up to the last white space, unless that would lose most of the text. */
function atWord(text: string): string {
  const end = text.search(/\s\S*$/);
  return (end > text.length / 2 ? text.slice(0, end) : text).trimEnd().toWellFormed();
}
