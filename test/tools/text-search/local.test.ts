import { describe, expect, it } from 'vitest';
import { createRandom } from '../../../src/random.js';
import { createLocalTextSearch } from '../../../src/tools/text-search/local.js';

const passages = [
  { id: 'kalo-city', text: 'Kalo Venn city: Oslo.' },
  { id: 'kalo-flower', text: 'Kalo Venn flower: Rose.' },
  { id: 'mira-city', text: 'Mira Tal city: Rome.' },
  { id: 'mira-flower', text: 'Mira Tal flower: Lily.' },
];

describe('local text search', () => {
  it('finds the passage that matches most rare words first', async () => {
    const search = createLocalTextSearch(passages, { results: 2 });
    expect(await search.search('city of Kalo Venn')).toEqual([
      { text: 'Kalo Venn city: Oslo.' },
      { text: 'Kalo Venn flower: Rose.' },
    ]);
  });

  it('keeps the order of the passages where scores are equal', async () => {
    const texts = async (order: typeof passages): Promise<(string | undefined)[]> =>
      (await createLocalTextSearch(order, { results: 9 }).search('CITY')).map(({ text }) => text);
    expect(await texts(passages)).toEqual(['Kalo Venn city: Oslo.', 'Mira Tal city: Rome.']);
    expect(await texts([...passages].reverse())).toEqual(['Mira Tal city: Rome.', 'Kalo Venn city: Oslo.']);
  });

  it('gives no results for unknown words, blanks and punctuation', async () => {
    const search = createLocalTextSearch(passages, { results: 2 });
    for (const query of ['unheard', '   ', '...', '']) expect(await search.search(query)).toEqual([]);
  });

  it('ranks as the written formula does on random passages', async () => {
    const random = createRandom(7);
    const words = Array.from({ length: 20 }, (_, i) => `w${String.fromCharCode(97 + i)}`);
    const text = (length: number): string =>
      Array.from({ length }, () => words[Math.floor(random() ** 2 * words.length)]).join(' ');
    const corpus = Array.from({ length: 60 }, (_, i) => ({ id: String(i), text: text(3 + Math.floor(random() * 12)) }));
    const search = createLocalTextSearch(corpus, { results: 60 });
    for (let i = 0; i < 25; i++) {
      const query = text(1 + Math.floor(random() * 4));
      const found = (await search.search(query)).map((result) => result.text ?? '');
      const scores = found.map((passage) => bm25(query, passage, corpus));
      expect(found.length).toBe(corpus.filter((passage) => bm25(query, passage.text, corpus) > 0).length);
      for (const [rank, score] of scores.slice(1).entries()) expect(score).toBeLessThanOrEqual((scores[rank] ?? 0) + 1e-9);
    }
  });

  it('stops when aborted', async () => {
    await expect(createLocalTextSearch(passages, { results: 2 }).search('city', AbortSignal.abort())).rejects.toThrow('abort');
  });
});

/** The formula of the module's first lines, word by word. */
function bm25(query: string, passage: string, corpus: readonly { text: string }[]): number {
  const split = (text: string): string[] => text.split(' ');
  const distinct = (text: string): number => new Set(split(text)).size;
  const meanLength = corpus.reduce((sum, { text }) => sum + distinct(text), 0) / corpus.length;
  return split(query).reduce((score, word) => {
    const frequency = split(passage).filter((other) => other === word).length;
    const holders = corpus.filter(({ text }) => split(text).includes(word)).length;
    const idf = Math.log(1 + (corpus.length - holders + 0.5) / (holders + 0.5));
    return score + (idf * frequency * 2.2) / (frequency + 1.2 * (0.25 + (0.75 * distinct(passage)) / meanLength));
  }, 0);
}
