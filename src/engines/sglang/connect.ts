// From options to servers that have passed the preflight: one model, one set of weights, alive enough to compute a token.
import { EngineError, UsageError } from '../../errors.js';
import type { EngineInfo } from '../../types.js';
import { singleBody } from './body.js';
import { Breaker, DEFAULT_BREAKER } from './breaker.js';
import { HttpClient, readJson } from './http.js';
import { createImageEncoder, type ImageEncoder } from './images.js';
import { type ModelFacts, readModelFolder } from './model-folder.js';
import { DEFAULTS, type PrefillMode, type SglangOptions } from './options.js';
import { ServerPool } from './pool.js';
import { inspectServer, type ServerFacts } from './preflight.js';
import { NO_NEW_TOKENS } from './sampling.js';
import { SglangServer } from './server.js';
import { REAL_SURROUNDINGS } from './surroundings.js';

export interface Connection {
  readonly pool: ServerPool;
  readonly model: ModelFacts;
  readonly info: EngineInfo;
  readonly encoder: ImageEncoder;
  readonly prefill: PrefillMode;
  readonly timeouts: { readonly requestMs: number; readonly generateMs: number };
  readonly onCall: SglangOptions['onCall'];
}

/** Throws when any of the servers cannot be used: a run starts with all that it was given. */
export async function connect(options: SglangOptions): Promise<Connection> {
  const model = await readModelFolder(options.modelFolder);
  if (options.urls.length === 0) throw new EngineError('no server named', { remedy: 'Give --engine-url.' });
  const servers = await Promise.all(options.urls.map((url) => connectServer(url, model, options)));
  const facts = servers.map((server) => server.facts);
  const first = facts[0] as ServerFacts;
  for (const other of facts) requireSame(first, other);
  return {
    pool: new ServerPool(servers),
    model,
    info: {
      engine: 'sglang',
      version: [...new Set(facts.map(({ version }) => version))].join(', '),
      model: first.model,
      weights: first.weights,
      vocabularySize: model.vocabularySize,
      contextLength: Math.min(...facts.map(({ contextLength }) => contextLength)),
      geometry: model.geometry,
    },
    encoder: createImageEncoder(
      options.imageTransport ?? DEFAULTS.imageTransport,
      options.imageCacheBytes ?? DEFAULTS.imageCacheBytes,
    ),
    prefill: options.prefill ?? DEFAULTS.prefill,
    timeouts: {
      requestMs: options.requestTimeoutMs ?? DEFAULTS.requestTimeoutMs,
      generateMs: options.generateTimeoutMs ?? DEFAULTS.generateTimeoutMs,
    },
    onCall: options.onCall,
  };
}

async function connectServer(url: string, model: ModelFacts, options: SglangOptions): Promise<SglangServer> {
  if (!URL.canParse(url) || !/^https?:/.test(url)) {
    throw new UsageError('no address of a server', { where: '--engine-url', expected: 'http://HOST:PORT', found: url });
  }
  const surroundings = options.surroundings ?? REAL_SURROUNDINGS;
  const breaker = new Breaker(options.breaker ?? DEFAULT_BREAKER, surroundings.clock);
  const http = new HttpClient({
    url,
    surroundings,
    breaker,
    ...(options.apiKey !== undefined && { apiKey: options.apiKey }),
    ...(options.adminKey !== undefined && { adminKey: options.adminKey }),
    ...(options.retry && { retry: options.retry }),
  });
  try {
    const timeoutMs = options.preflightTimeoutMs ?? DEFAULTS.preflightTimeoutMs;
    const facts = await inspectServer(http, model, timeoutMs);
    await computeOneToken(http, timeoutMs);
    const requestLimit = options.requestLimit ?? DEFAULTS.requestLimit;
    return new SglangServer({ http, facts, breaker, surroundings, requestLimit, isolationKey: options.isolationKey });
  } catch (error) {
    await http.close();
    throw error;
  }
}

/** The information pages answer even when the scheduler is dead; only a computed token shows that it lives. */
export async function computeOneToken(http: HttpClient, timeoutMs: number): Promise<void> {
  const sampling = { ...NO_NEW_TOKENS, max_new_tokens: 1 };
  const fields = { rid: `ssr-ready-${crypto.randomUUID()}`, sampling_params: sampling, return_logprob: false };
  await http.fetch(
    {
      method: 'POST',
      path: '/generate',
      body: () => singleBody({ ids: [Buffer.from('0')], images: [] }, fields),
      timeoutMs,
      idempotent: true,
    },
    readJson,
  );
}

function requireSame(first: ServerFacts, other: ServerFacts): void {
  for (const key of ['model', 'weights'] as const) {
    if (first[key] === other[key]) continue;
    throw new EngineError('servers with different weights cannot share a run', {
      where: `${first.url}, ${other.url}`,
      expected: `${key} ${first[key]}`,
      found: other[key],
    });
  }
}
