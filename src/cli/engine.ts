// Which engine a run uses, from its settings; keys come from the environment alone.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:net';
import { createEmbeddedEngine } from '../engines/embedded/engine.js';
import { createScriptedEngine, readScript } from '../engines/scripted.js';
import type { CallRecord } from '../engines/sglang/calls.js';
import { createSglangEngine } from '../engines/sglang/engine.js';
import type { ImageTransport } from '../engines/sglang/images.js';
import type { SglangOptions } from '../engines/sglang/options.js';
import { serve } from '../engines/sglang/serve.js';
import { UsageError } from '../errors.js';
import type { Candidate, Engine, Tokenizer } from '../types.js';
import type { Environment } from './judge.js';
import type { Settings } from './options.js';

export interface EngineHooks {
  /** Told of each call to a server, with client and server time. */
  readonly onCall?: (call: CallRecord) => void;
  /** Told what a server that is started for the run writes. */
  readonly onServerLine?: (line: string) => void;
}

export interface EngineRequest {
  readonly settings: Settings;
  /** Checkpoint folder. */
  readonly model: string;
  readonly tokenizer: Tokenizer;
  readonly candidates: readonly Candidate[];
  readonly environment: Environment;
  readonly hooks: EngineHooks;
}

/** Throws what the engine throws when it cannot start or its server does not fit. */
export async function openEngine({ settings, model, tokenizer, candidates, environment, hooks }: EngineRequest): Promise<Engine> {
  switch (settings.engine) {
    case 'scripted':
      return createScriptedEngine({ script: await readScript(settings.script as string), tokenizer, candidates, model });
    case 'sglang':
      return settings.engineUrl === undefined
        ? startSglang(settings, model, environment, hooks)
        : createSglangEngine(sglangOptions(settings, model, settings.engineUrl, environment, hooks));
    case 'embedded':
      return createEmbeddedEngine(model, { ...(settings.workers !== undefined && { workers: settings.workers }) });
  }
}

/** Keys of SGLang servers: --api-key protects everything, --admin-api-key the management endpoints. */
export function engineKeys({ SSR_ENGINE_API_KEY: apiKey, SSR_ENGINE_ADMIN_KEY: adminKey }: Environment): {
  apiKey?: string;
  adminKey?: string;
} {
  return { ...(apiKey && { apiKey }), ...(adminKey && { adminKey }) };
}

/** A port that nobody listens to at the moment. */
export async function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
      .once('error', reject)
      .listen(0, '127.0.0.1', () => {
        const address = server.address();
        server.close(() => resolve(typeof address === 'object' && address ? address.port : 0));
      });
  });
}

/** A server of its own for one run; it ends with the engine. */
async function startSglang(settings: Settings, model: string, environment: Environment, hooks: EngineHooks): Promise<Engine> {
  const { onServerLine } = hooks;
  const server = await serve({
    model,
    port: await freePort(),
    ...engineKeys(environment),
    ...(settings.python !== undefined && { python: settings.python }),
    ...(onServerLine && { onLine: onServerLine }),
  });
  try {
    const engine = await createSglangEngine(sglangOptions(settings, model, [server.url], environment, hooks));
    return {
      describe: () => engine.describe(),
      prefill: (...call) => engine.prefill(...call),
      score: (...call) => engine.score(...call),
      generate: (...call) => engine.generate(...call),
      release: (trajectory) => engine.release(trajectory),
      close: async () => {
        await engine.close();
        await server.stop();
      },
    };
  } catch (error) {
    await server.stop();
    throw error;
  }
}

function sglangOptions(
  settings: Settings,
  modelFolder: string,
  urls: readonly string[],
  environment: Environment,
  { onCall }: EngineHooks,
): SglangOptions {
  const { prefill, requestLimit, requestTimeout, generateTimeout } = settings;
  return {
    urls,
    modelFolder,
    isolationKey: `ssr-${randomUUID()}`,
    imageTransport: imageTransport(settings),
    ...engineKeys(environment),
    ...(prefill && { prefill }),
    ...(requestLimit !== undefined && { requestLimit }),
    ...(requestTimeout !== undefined && { requestTimeoutMs: 1000 * requestTimeout }),
    ...(generateTimeout !== undefined && { generateTimeoutMs: 1000 * generateTimeout }),
    ...(onCall && { onCall }),
  };
}

function imageTransport({ imageTransport: kind = 'data', imageFolder: folder, imageBaseUrl: baseUrl }: Settings): ImageTransport {
  if (kind === 'data') return { kind };
  if (folder === undefined)
    throw new UsageError(`--image-transport ${kind} needs a folder`, { expected: '--image-folder FOLDER' });
  if (kind === 'path') return { kind, folder };
  if (baseUrl === undefined) throw new UsageError('--image-transport url needs an address', { expected: '--image-base-url URL' });
  return { kind, folder, baseUrl };
}
