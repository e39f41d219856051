// What a run's tools are made of, as plain values: keys, addresses and folders are given, never looked up.

import type { ImageSearch, TextSearch } from '../types.js';
import type { Clock } from './clock.js';
import type { CropOptions } from './crop.js';
import type { Resolve } from './http/guard.js';
import type { RetryPolicy } from './http/retry.js';
import type { CountTokens } from './pages/token-budget.js';

interface Results {
  /** Most results per search. */
  readonly results: number;
}

interface Hosted extends Results {
  /** Absent only where nothing is asked for live. */
  readonly key?: string;
  /** Another server that speaks the provider's protocol. */
  readonly baseUrl?: string;
  /** Two-letter codes; en and us unless said. */
  readonly language?: string;
  readonly country?: string;
}

/** A search that a benchmark brings along; `version` names its corpus. */
export interface Given<Search> extends Results {
  readonly provider: 'given';
  readonly search: Search;
  readonly version: string;
}

export type TextSearchOptions =
  | ({ readonly provider: 'serpapi' | 'serper' } & Hosted)
  | ({ readonly provider: 'retriever'; readonly url: string } & Results)
  | ({ readonly provider: 'local'; readonly corpus: string } & Results)
  | Given<TextSearch>;

export type ImageSearchOptions =
  | ({
      readonly provider: 'lens';
      /** Upload command or PUT target, see image-host.ts; absent only where nothing is asked for live. */
      readonly imageHost?: string;
    } & Hosted)
  | ({ readonly provider: 'precomputed' | 'manifest'; readonly path: string } & Results)
  | ({ readonly provider: 'local'; readonly folder: string; readonly thumbnails: boolean } & Results)
  | Given<ImageSearch>;

export interface PageTextOptions {
  /** Most tokens of a page's text: shown in mode `text`, summarised in mode `summary`. */
  readonly tokens: number;
  readonly countTokens: CountTokens;
  /** Names the tokenizer behind `countTokens` in recordings, such as its hash. */
  readonly tokenizer: string;
}

export type PagesOptions =
  | { readonly mode: 'snippets' }
  | ({ readonly mode: 'text' } & PageTextOptions)
  | ({
      readonly mode: 'summary';
      /** OpenAI-compatible, up to and with /v1. */
      readonly baseUrl: string;
      readonly model: string;
      readonly key?: string;
      /** With {{query}} and {{page}}; configs/prompts/page-summary.txt unless said. */
      readonly prompt?: string;
    } & PageTextOptions);

export type RecordingOptions =
  | { readonly mode: 'live' }
  | { readonly mode: 'record'; readonly store: string }
  | { readonly mode: 'replay' | 'strict'; readonly store: string; readonly replayLatency?: boolean };

export interface NetworkOptions {
  /** Hosts, host:port, addresses or ranges that may be private: for tests and local servers. */
  readonly allow?: readonly string[];
  /** Most calls to paid providers, all together; without cap where absent. */
  readonly maxPaidCalls?: number;
  /** Price of one paid call, by provider. */
  readonly prices?: Readonly<Record<string, number>>;
  /** Requests a second, by provider. */
  readonly requestsPerSecond?: Readonly<Record<string, number>>;
  readonly retry?: Partial<RetryPolicy>;
  /** Of host names; the system's unless said. */
  readonly resolve?: Resolve;
}

export interface ToolOptions {
  /** A tool that is absent is disabled. */
  readonly textSearch?: TextSearchOptions;
  readonly imageSearch?: ImageSearchOptions;
  readonly crop?: CropOptions;
  readonly pages?: PagesOptions;
  readonly recording: RecordingOptions;
  readonly network?: NetworkOptions;
  readonly clock?: Clock;
}
