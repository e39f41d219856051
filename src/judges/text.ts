// Texts as answers: what is left when writing, punctuation and articles do not matter.

/** Equality of the normalised texts; a text of which nothing is left equals nothing, not even itself. */
export function sameText(answer: string, gold: string): boolean {
  const normalised = normaliseText(answer);
  return normalised !== '' && normalised === normaliseText(gold);
}

/** NFKC, lower case, white space collapsed, and no punctuation or article around what is meant. */
export function normaliseText(text: string): string {
  let rest = text.normalize('NFKC').toLowerCase().replace(/\s+/g, ' ').trim();
  for (let before = ''; before !== rest; ) {
    before = rest;
    rest = withoutArticle(withoutPunctuation(rest));
  }
  return rest;
}

/** Sentence marks, quotes, brackets and Markdown's emphasis. Signs that carry meaning stay: -5, 50%, $3, C#, .5 and +. */
function withoutPunctuation(text: string): string {
  return text
    .replace(/^(?:[\s;:!?…¡¿"'«»‹›“”„‘’‚`´*_~()[\]{}<>]|[.,](?!\d))+/u, '')
    .replace(/[\s.,;:!?…"'«»‹›“”„‘’‚`´*_~()[\]{}<>]+$/u, '');
}

/** A leading article goes only when something follows it: the answer "A" is a letter. */
function withoutArticle(text: string): string {
  return text.replace(/^(?:the|an|a) (?=\S)/, '');
}
