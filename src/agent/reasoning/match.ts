// Which entry of the library a written thought is: the same text, else the nearest one by edit distance.
import type { LibraryEntry } from '../../types.js';

export interface Match {
  readonly candidate: string;
  /** Edit distance in characters (Levenshtein), white space squeezed; 0 is exact. */
  readonly distance: number;
}

/** The nearest entry, the first in library order where several are. Throws RangeError for an empty library. */
export function nearestEntry(text: string, library: readonly Pick<LibraryEntry, 'id' | 'text'>[]): Match {
  const wanted = squeeze(text);
  const matches = library.map(
    ({ id, text: entry }): Match => ({ candidate: id, distance: editDistance(wanted, squeeze(entry)) }),
  );
  return matches.reduce((best, match) => (match.distance < best.distance ? match : best));
}

/** Levenshtein distance: least insertions, deletions and substitutions of one character. */
export function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const substitute = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(substitute, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}

function squeeze(text: string): string {
  return text.trim().replace(/\s+/g, ' ');
}
