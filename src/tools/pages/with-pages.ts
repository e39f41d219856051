// Search results with their pages read: each result's text becomes the page's text or summary, or stays the snippet with the reason kept.
import pLimit from 'p-limit';
import { ToolError } from '../../errors.js';
import { MissingRecordingError } from '../errors.js';
import type { ToolSearchResult } from '../provider.js';
import type { Operated } from '../recording/recorded.js';
import type { PageText } from './summary.js';

export interface PageReaders {
  readonly page: Operated<string>;
  /** Absent where the page's text itself is shown. */
  readonly summary?: Operated<PageText>;
}

const pagesAtOnce = 5;

export function withPages(search: Operated<string>, readers: PageReaders): Operated<string> {
  return async (query, signal) => {
    const results = await search(query, signal);
    return pLimit(pagesAtOnce).map(results, (result) => readResult(query, result, readers, signal));
  };
}

async function readResult(
  query: string,
  result: ToolSearchResult,
  { page, summary }: PageReaders,
  signal?: AbortSignal,
): Promise<ToolSearchResult> {
  if (result.url === undefined) return { ...result, fallback: 'the result has no address' };
  try {
    const text = (await page(result.url, signal))[0]?.text ?? '';
    if (!summary) return { ...result, text };
    return { ...result, text: (await summary({ query, text }, signal))[0]?.text ?? '' };
  } catch (error) {
    // What a replay lacks must not turn into a snippet: the run would mix two ways of reading.
    if (!(error instanceof ToolError) || error instanceof MissingRecordingError) throw error;
    return { ...result, fallback: error.message };
  }
}
