// The fields of a run, once: each is a key of a config file and a flag of the command line, with one schema for both.
import { z } from 'zod';
import { dialectNames } from '../agent/dialects/registry.js';
import { reasonings, scorers, sketches } from '../agent/reasoning/create.js';

export interface Field {
  readonly schema: z.ZodType;
  /** How a command-line string becomes the schema's value. */
  readonly kind: 'text' | 'number' | 'path' | 'list' | 'switch';
  readonly placeholder: string;
  readonly help: string;
}

const positive = z.number().int().min(1);
const text = z.string().min(1);

export const FIELDS = {
  benchmark: field(
    text,
    'text',
    'name',
    'micro, a prepared data set, all (the seven), a folder, FILE.jsonl, or manifest.json#set',
  ),
  split: field(text, 'text', 'name', 'split of the benchmark'),
  data: field(text, 'path', 'folder', 'where data sets are prepared (default: data); for micro, where its splits lie'),
  engine: field(
    z.enum(['embedded', 'sglang', 'scripted']),
    'text',
    'name',
    'embedded (runs the checkpoint here), sglang (servers), scripted (plays --script)',
  ),
  engineUrl: field(
    z.array(z.url()).min(1),
    'list',
    'url...',
    'SGLang servers with the same model; without one a server is started for the run',
  ),
  python: field(text, 'text', 'command', 'Python interpreter that has SGLang, to start a server with'),
  prefill: field(
    z.enum(['auto', 'on', 'off']),
    'text',
    'mode',
    "SGLang: whether h_t is prefilled before scoring; off is the paper's pseudocode",
  ),
  imageTransport: field(
    z.enum(['data', 'path', 'url']),
    'text',
    'mode',
    'SGLang: pictures in requests, or read by the server from --image-folder',
  ),
  imageFolder: field(text, 'path', 'folder', 'where pictures are put for the server to read'),
  imageBaseUrl: field(z.url(), 'text', 'url', 'address at which --image-folder is served, for --image-transport url'),
  requestLimit: field(positive, 'number', 'n', 'SGLang: requests in flight per server'),
  requestTimeout: field(z.number().gt(0).max(1_000_000), 'number', 'seconds', 'SGLang: limit of a prefill or scoring request'),
  generateTimeout: field(z.number().gt(0).max(1_000_000), 'number', 'seconds', 'SGLang: limit of a request that writes'),
  model: field(text, 'path', 'folder', 'Hugging Face checkpoint folder (Qwen3-VL)'),
  script: field(text, 'path', 'file', 'what the scripted engine plays: {"<id>": [{"candidate": 0, "action": "..."}]}'),
  dialect: field(z.enum(dialectNames), 'text', 'name', `the checkpoint's agent format: ${dialectNames.join(', ')}`),
  prompt: field(text, 'path', 'file', 'system prompt; {{candidates}} and {{tools}} are filled in'),
  library: field(text, 'path', 'file', 'reasoning library (JSON)'),
  reasoning: field(z.enum(reasonings), 'text', 'name', `way to reason before acting: ${reasonings.join(', ')}`),
  scorer: field(z.enum(scorers), 'text', 'name', `what scores are made of: ${scorers.join(', ')}`),
  maxThoughtTokens: field(positive, 'number', 'n', 'most tokens of a written thought'),
  sketch: field(z.enum(sketches), 'text', 'name', `kind of sketch-of-thought: ${sketches.join(', ')}`),
  openings: field(text, 'text', 'file|url', 'first words of thoughts: a JSON table by question id, or a probe or router'),
  openingTexts: field(text, 'text', 'texts', 'first words that logprob-prefill chooses among, separated by |'),
  fallback: field(z.enum(reasonings), 'text', 'name', 'way to reason where no candidate leads by --fallback-margin'),
  fallbackMargin: field(z.number().min(0), 'number', 'nats', 'least lead of the best candidate over the second'),
  alpha: field(z.number().min(0).max(1), 'number', 'x', 'length exponent of scores: 1 mean, 0 sum'),
  tau: field(z.number().min(0), 'number', 'x', 'selection temperature; 0 takes the best candidate'),
  maxTurns: field(positive, 'number', 'n', 'T_max, turns per question'),
  maxNewTokens: field(positive, 'number', 'n', 'new tokens per action'),
  temperature: field(z.number().min(0), 'number', 'x', 'action temperature; 0 is greedy'),
  topP: field(z.number().gt(0).max(1), 'number', 'x', 'nucleus of action sampling; 1 keeps all'),
  topK: field(z.number().int().min(0), 'number', 'n', 'most likely tokens that may be sampled; 0 keeps all'),
  textResults: field(positive, 'number', 'n', 'results per text search'),
  imageResults: field(positive, 'number', 'n', 'results per image search'),
  textSearch: field(
    z.enum(['local', 'serpapi', 'serper', 'retriever', 'none']),
    'text',
    'provider',
    "text search instead of the benchmark's own (keys: SERPAPI_API_KEY, SERPER_API_KEY)",
  ),
  textSearchUrl: field(z.url(), 'text', 'url', 'address of the retriever, or of a server that speaks the provider'),
  textCorpus: field(text, 'path', 'path', 'folder or JSONL file that the local text search reads'),
  imageSearch: field(
    z.enum(['local', 'lens', 'precomputed', 'manifest', 'none']),
    'text',
    'provider',
    "reverse-image search instead of the benchmark's own (key: SERPAPI_API_KEY)",
  ),
  imageSearchUrl: field(z.url(), 'text', 'url', 'server that speaks the provider'),
  imageSearchPath: field(
    text,
    'path',
    'path',
    'folder of pictures (local), prepared data set (precomputed), or recorded manifest',
  ),
  imageHost: field(text, 'text', 'target', 'how lens gets a public address: an upload command with {file}, or a URL to PUT to'),
  imageThumbnails: field(z.boolean(), 'switch', '', 'local image search shows the pictures it found'),
  searchLanguage: field(z.string().length(2), 'text', 'code', 'language of searches'),
  searchCountry: field(z.string().length(2), 'text', 'code', 'country of searches'),
  pages: field(z.enum(['snippets', 'text', 'summary']), 'text', 'mode', 'what is shown of a page that a text search found'),
  pageTokens: field(positive, 'number', 'n', "most tokens of a page's text"),
  summaryUrl: field(z.url(), 'text', 'url', 'OpenAI-compatible endpoint that summarises pages (key: SSR_SUMMARY_API_KEY)'),
  summaryModel: field(text, 'text', 'name', 'model that summarises pages'),
  tools: field(
    z.enum(['live', 'record', 'replay', 'strict']),
    'text',
    'mode',
    'live, recorded (the default with a network), replayed, or replayed without exceptions',
  ),
  toolStore: field(text, 'path', 'folder', 'where tool replies are recorded (default: results/tool-store)'),
  replayLatency: field(z.boolean(), 'switch', '', 'a replay takes as long as the recorded call did'),
  maxPaidCalls: field(z.number().int().min(0), 'number', 'n', 'most paid calls of a run; it stops there'),
  allowHosts: field(z.array(text).min(1), 'list', 'host...', 'private hosts that tools may call'),
  minToolSuccess: field(
    z.number().min(0).max(100),
    'number',
    'percent',
    'say that the run is unhealthy when fewer tool calls succeed',
  ),
  judge: field(
    z.enum(['exact', 'llm']),
    'text',
    'name',
    'who decides whether an answer is right: exact match, or a language model',
  ),
  judgeUrl: field(z.url(), 'text', 'url', 'OpenAI-compatible endpoint of the judge, up to its version (key: SSR_JUDGE_API_KEY)'),
  judgeModel: field(text, 'text', 'name', 'model that judges'),
  judgeImages: field(z.boolean(), 'switch', '', 'show the judge the pictures'),
  judgeCache: field(text, 'path', 'file', 'verdicts are kept and reused here (default: results/judge-cache.jsonl)'),
  judgeConcurrency: field(positive, 'number', 'n', 'requests to the judge at once'),
  seed: field(z.number().int().min(0), 'number', 'n', "seed of the run; each question's own is derived from it"),
  limit: field(positive, 'number', 'n', 'only the first n questions'),
  sample: field(positive, 'number', 'n', 'a seeded sample of n questions, stratified by type'),
  ids: field(text, 'path', 'file', 'only the questions whose ids the file lists, one a line'),
  concurrency: field(positive, 'number', 'n', 'questions in flight'),
  workers: field(positive.max(256), 'number', 'n', 'worker threads of the embedded engine'),
  output: field(text, 'path', 'folder', 'results folder of the run'),
  questionLimit: field(
    z.number().gt(0).max(1_000_000),
    'number',
    'seconds',
    'most time per question; longer ones are errors, not wrong answers',
  ),
  maxErrorRate: field(
    z.number().min(0).max(100),
    'number',
    'percent',
    'stop the run when more questions fail (after 20; default 50)',
  ),
  minSuccess: field(z.number().min(0).max(100), 'number', 'percent', 'exit with code 100 when success is below'),
} as const;

export type FieldName = keyof typeof FIELDS;

type Shape = { [K in FieldName]: (typeof FIELDS)[K]['schema'] };

/** A config file: every field optional, unknown keys refused. */
export const configSchema = z
  .strictObject(Object.fromEntries(Object.entries(FIELDS).map(([name, { schema }]) => [name, schema])) as Shape)
  .partial();

export type Config = { readonly [K in FieldName]?: z.infer<Shape[K]> };

/** Fields that change how a run is carried out but not what it is: a run may be resumed with others. */
const INCIDENTAL: readonly FieldName[] = [
  // Which questions: the data's and the plan's hashes say it.
  'benchmark',
  'limit',
  'sample',
  'judgeConcurrency',
  'engineUrl',
  'python',
  'requestLimit',
  'requestTimeout',
  'generateTimeout',
  'tools',
  'replayLatency',
  'maxPaidCalls',
  'allowHosts',
  'minToolSuccess',
  'concurrency',
  'workers',
  'questionLimit',
  'maxErrorRate',
  'minSuccess',
];

/** Values where neither flag nor config file says anything (the paper's code's defaults where it has them). */
export const DEFAULTS = {
  engine: 'embedded',
  dialect: 'ssr',
  scorer: 'length',
  maxThoughtTokens: 1024,
  alpha: 1,
  tau: 0,
  maxNewTokens: 8192,
  temperature: 0,
  topP: 1,
  topK: 0,
  textResults: 5,
  imageResults: 5,
  pages: 'snippets',
  pageTokens: 2048,
  judge: 'exact',
  judgeConcurrency: 8,
  maxErrorRate: 50,
  seed: 42,
} as const satisfies Config;

type Given = keyof typeof DEFAULTS | 'benchmark' | 'library' | 'reasoning' | 'maxTurns';
export type Settings = Config & Required<Pick<Config, Given>>;

/** The settings that make a run the run it is; files count by their content, elsewhere, not by their path. */
export function identityOf(settings: Settings): Config {
  return Object.fromEntries(
    Object.entries(settings).filter(
      ([name]) => FIELDS[name as FieldName].kind !== 'path' && !INCIDENTAL.includes(name as FieldName),
    ),
  ) as Config;
}

/** `maxTurns` → `--max-turns`. */
export function flagOf(name: FieldName): string {
  return `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

function field<S extends z.ZodType>(schema: S, kind: Field['kind'], placeholder: string, help: string) {
  return { schema, kind, placeholder, help } satisfies Field;
}
