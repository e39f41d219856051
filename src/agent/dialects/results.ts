// What search results have in common whatever the format: which search they came from, and their text made harmless.
import type { Image, SearchResult } from '../../types.js';

/** A search by picture brings titles and thumbnails, one by text brings passages. */
export function isImageSearch(results: readonly SearchResult[]): boolean {
  return results.length > 0 && results.every(({ text }) => text === undefined);
}

export function thumbnailsOf(results: readonly SearchResult[]): Image[] {
  return results.flatMap(({ thumbnail }) => thumbnail ?? []);
}

/** The parts of a result that are there, escaped, one per line. */
export function linesOf({ title, text, url }: SearchResult, outside: (text: string) => string): string {
  return [title, text, url].flatMap((part) => (part === undefined ? [] : outside(part))).join('\n');
}
