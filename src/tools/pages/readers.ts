// How pages are read in a run: not at all, as text, or as summaries.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { UsageError } from '../../errors.js';
import { packageRoot } from '../../paths.js';
import { requireEndpoint } from '../http/url.js';
import type { PagesOptions } from '../options.js';
import { operate } from '../recording/recorded.js';
import type { Workshop } from '../workshop.js';
import { createPageProvider } from './fetch.js';
import { createSummaryProvider } from './summary.js';
import type { PageReaders } from './with-pages.js';

/** Null where results show their snippets. Throws UsageError for a prompt without its places. */
export async function pageReaders(options: PagesOptions, workshop: Workshop): Promise<PageReaders | null> {
  if (options.mode === 'snippets') return null;
  const { http, redactor, parser } = workshop;
  const page = operate(createPageProvider({ http, parser, ...options }), workshop);
  if (options.mode === 'text') return { page };
  const { model, key, prompt = await defaultPrompt() } = options;
  if (!prompt.includes('{{query}}') || !prompt.includes('{{page}}')) {
    throw new UsageError('the summary prompt lacks its places', { expected: '{{query}} and {{page}}' });
  }
  const baseUrl = requireEndpoint(options.baseUrl, 'summary base URL');
  const summary = createSummaryProvider({ http, redactor, baseUrl, model, prompt, ...(key !== undefined && { key }) });
  return { page, summary: operate(summary, workshop) };
}

function defaultPrompt(): Promise<string> {
  return readFile(join(packageRoot(), 'configs/prompts/page-summary.txt'), 'utf8');
}
