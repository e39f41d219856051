// Which tools a run has, from its settings; keys come from the environment alone.
import { resolve } from 'node:path';
import { microToolbox } from '../../benchmarks/micro/index.js';
import { UsageError } from '../errors.js';
import { createTools, type Tools } from '../tools/create.js';
import type { ImageSearchOptions, PagesOptions, RecordingOptions, TextSearchOptions } from '../tools/options.js';
import type { Benchmark, Tokenizer, Toolbox } from '../types.js';
import type { Environment } from './judge.js';
import type { FieldName, Settings } from './options.js';

/** Fields that decide what tools give back. */
export const RESULT_FIELDS = [
  'textSearch',
  'textSearchUrl',
  'textCorpus',
  'textResults',
  'imageSearch',
  'imageSearchUrl',
  'imageSearchPath',
  'imageHost',
  'imageThumbnails',
  'imageResults',
  'searchLanguage',
  'searchCountry',
  'pages',
  'pageTokens',
  'summaryUrl',
  'summaryModel',
] as const satisfies readonly FieldName[];

/** All fields that tools depend on; `ssr tool` has no others. */
export const TOOL_FIELDS = [
  ...RESULT_FIELDS,
  'tools',
  'toolStore',
  'replayLatency',
  'maxPaidCalls',
  'allowHosts',
] as const satisfies readonly FieldName[];

export type ToolSettings = Pick<Settings, (typeof TOOL_FIELDS)[number]>;

/** A benchmark's own searches and the version of their corpus. */
export interface OwnTools extends Toolbox {
  readonly version: string;
}

/** Searches that come with the benchmark; only micro has corpora of its own. */
export async function ownTools(settings: Settings, benchmark: Benchmark): Promise<OwnTools> {
  const { split = 'plain', textResults, imageResults, data } = settings;
  if (settings.benchmark !== 'micro') return { version: benchmark.sha256 };
  return { ...(await microToolbox(split, { textResults, imageResults }, data)), version: benchmark.sha256 };
}

/** Throws UsageError for a tool that lacks its key, address or corpus, before anything runs. */
export async function openTools(
  settings: ToolSettings,
  own: OwnTools,
  tokenizer: Tokenizer,
  environment: Environment,
): Promise<Tools> {
  const textSearch = textSearchOptions(settings, own, environment);
  const imageSearch = imageSearchOptions(settings, own, environment);
  const { maxPaidCalls, allowHosts } = settings;
  return createTools({
    ...(textSearch && { textSearch }),
    ...(imageSearch && { imageSearch }),
    crop: {},
    pages: pagesOptions(settings, tokenizer, environment),
    recording: recordingOptions(settings),
    network: {
      ...(maxPaidCalls !== undefined && { maxPaidCalls }),
      ...(allowHosts !== undefined && { allow: allowHosts }),
    },
  });
}

function textSearchOptions(settings: ToolSettings, own: OwnTools, environment: Environment): TextSearchOptions | null {
  const { textSearch: provider, textSearchUrl: url, textResults: results, textCorpus: corpus } = settings;
  switch (provider) {
    case undefined:
      return own.textSearch ? { provider: 'given', search: own.textSearch, version: own.version, results } : null;
    case 'local':
      return { provider, corpus: required(corpus, '--text-search local', '--text-corpus PATH'), results };
    case 'retriever':
      return { provider, url: required(url, '--text-search retriever', '--text-search-url URL'), results };
    case 'serpapi':
    case 'serper':
      return {
        provider,
        results,
        ...hosted(settings, url, provider === 'serper' ? environment.SERPER_API_KEY : environment.SERPAPI_API_KEY),
      };
    default:
      return null;
  }
}

function imageSearchOptions(settings: ToolSettings, own: OwnTools, environment: Environment): ImageSearchOptions | null {
  const { imageSearch: provider, imageResults: results, imageSearchUrl, imageSearchPath, imageHost, imageThumbnails } = settings;
  const path = (): string => required(imageSearchPath, `--image-search ${provider}`, '--image-search-path PATH');
  switch (provider) {
    case undefined:
      return own.imageSearch ? { provider: 'given', search: own.imageSearch, version: own.version, results } : null;
    case 'local':
      return { provider, folder: path(), thumbnails: imageThumbnails ?? false, results };
    case 'precomputed':
    case 'manifest':
      return { provider, path: path(), results };
    case 'lens':
      return {
        provider,
        results,
        ...hosted(settings, imageSearchUrl, environment.SERPAPI_API_KEY),
        ...(imageHost && { imageHost }),
      };
    default:
      return null;
  }
}

function hosted({ searchLanguage: language, searchCountry: country }: ToolSettings, baseUrl?: string, key?: string) {
  return { ...(key && { key }), ...(baseUrl && { baseUrl }), ...(language && { language }), ...(country && { country }) };
}

function pagesOptions(settings: ToolSettings, tokenizer: Tokenizer, environment: Environment): PagesOptions {
  const { pages: mode, pageTokens: tokens, summaryUrl, summaryModel } = settings;
  if (mode === 'snippets') return { mode };
  const text = { tokens, countTokens: (part: string) => tokenizer.encode(part).length, tokenizer: tokenizer.sha256 };
  if (mode === 'text') return { mode, ...text };
  const key = environment.SSR_SUMMARY_API_KEY;
  return {
    mode,
    ...text,
    baseUrl: required(summaryUrl, '--pages summary', '--summary-url URL'),
    model: required(summaryModel, '--pages summary', '--summary-model NAME'),
    ...(key && { key }),
  };
}

/** What the network says is recorded unless told otherwise; corpora on this machine need no recording. */
function recordingOptions(settings: ToolSettings): RecordingOptions {
  const online = ['serpapi', 'serper', 'retriever'].includes(settings.textSearch ?? '') || settings.imageSearch === 'lens';
  const mode = settings.tools ?? (online ? 'record' : 'live');
  const store = settings.toolStore ?? resolve('results/tool-store');
  if (mode === 'live') return { mode };
  return mode === 'record' ? { mode, store } : { mode, store, replayLatency: settings.replayLatency ?? false };
}

function required(value: string | undefined, what: string, expected: string): string {
  if (value === undefined) throw new UsageError(`${what} needs more`, { expected });
  return value;
}
