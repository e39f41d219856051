// A back end as the tool layer sees it: one question in, results out, with what names the answer and the replies as they came.
import type { SearchResult } from '../types.js';
import type { RawReply } from './errors.js';

export type ProviderKind = 'text-search' | 'image-search' | 'page' | 'summary' | 'thumbnail';

/** A result with what only the records and the next layer need; neither is shown to the model. */
export interface ToolSearchResult extends SearchResult {
  /** Name of the site. */
  readonly source?: string;
  /** Address of a thumbnail that has not been fetched yet. */
  readonly thumbnailUrl?: string;
  /** Why the snippet stands where page text was asked for. */
  readonly fallback?: string;
}

export interface Reply {
  readonly results: readonly ToolSearchResult[];
  /** Empty where nothing came over the network. */
  readonly raw: readonly RawReply[];
}

export type Parameters = Readonly<Record<string, string | number | boolean | null>>;

/** `Subject` is what is asked about: a query, a picture, an address. */
export interface Provider<Subject> {
  readonly kind: ProviderKind;
  readonly name: string;
  /** Changes when equal questions may be answered otherwise: of our parser, of a corpus. */
  readonly version: string;
  /** Everything beside the subject that decides the answer; no secrets. */
  readonly parameters: Parameters;
  /** The subject, normalised, as it stands in recordings: equal strings are equal questions. */
  subjectOf(subject: Subject): string;
  /** Throws ToolError when there is no answer; no results are an answer of their own. */
  ask(subject: Subject, signal?: AbortSignal): Promise<Reply>;
}

/** Outer and repeated white space says nothing; the same letters may be composed in different ways. */
export function normaliseQuery(query: string): string {
  return query.toWellFormed().normalize('NFC').replace(/\s+/g, ' ').trim();
}

/** A line of a result list: outside line breaks would start another result. */
export function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').trim();
}
