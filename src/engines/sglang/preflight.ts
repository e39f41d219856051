// Before the first question: what the server is, whether it can keep the engine's promises, and what must be adapted.

import type { z } from 'zod';
import { EngineError } from '../../errors.js';
import { type HttpClient, type HttpReply, readJson } from './http.js';
import type { ModelFacts } from './model-folder.js';
import { type ModelInfo, modelInfoSchema, modelsSchema, type ServerInfo, serverInfoSchema } from './protocol.js';
import { atLeast, parseVersion, type Version } from './version.js';

/** What the client knows of one server; plain data, without keys, fit for a run's manifest. */
export interface ServerFacts {
  readonly url: string;
  readonly version: string;
  readonly model: string;
  readonly weights: string;
  readonly pageSize: number;
  readonly contextLength: number;
  /** Whether equal seeds give equal samples; without it the server ignores sampling_seed. */
  readonly deterministic: boolean;
  /** Batches of prompts with pictures answer 500 in 0.5.11 - 0.5.18, so they are used only where known to work. */
  readonly imageBatches: boolean;
  /** Data-parallel replicas, each with its own prefix cache. */
  readonly replicas: number;
  /** The server streams only what is new instead of everything so far. */
  readonly incrementalStream: boolean;
  readonly attentionBackend: string | null;
  readonly mmAttentionBackend: string | null;
  readonly schedulePolicy: string | null;
  readonly chunkedPrefillSize: number | null;
  readonly maxRunningRequests: number | null;
  /** What was adapted and why, one sentence each. */
  readonly notices: readonly string[];
}

/** Asks the server what it is; throws EngineError by name for what cannot work, EngineUnavailableError when it is not there. */
export async function inspectServer(http: HttpClient, model: ModelFacts, timeoutMs: number): Promise<ServerFacts> {
  const ask = <S extends z.ZodType>(paths: readonly string[], schema: S) => get(http, paths, schema, timeoutMs);
  const info = await ask(['/model_info', '/get_model_info'], modelInfoSchema);
  const server = await ask(['/server_info', '/get_server_info'], serverInfoSchema);
  if (!info || !server) {
    throw new EngineError('this is no SGLang server', {
      where: http.url,
      expected: 'answers from /model_info and /server_info',
      remedy: 'Give --engine-url the address of a server started with `ssr serve` or `sglang serve`.',
    });
  }
  const version = parseVersion(server.version);
  refuse(http.url, info, server, version);
  const models = await ask(['/v1/models'], modelsSchema).catch(() => null);
  const lengths = [
    models?.data[0]?.max_model_len ?? server.context_length ?? model.contextLength,
    // Longer prompts are refused, and so near the end max_new_tokens would be cut without a word.
    server.max_req_input_len,
    server.max_total_num_tokens,
  ];
  return {
    url: http.url,
    version: server.version ?? 'unknown',
    model: info.model_path,
    weights: String(info.weight_version ?? 'default'),
    pageSize: server.page_size ?? 1,
    contextLength: Math.min(...lengths.filter((length) => typeof length === 'number')),
    deterministic: server.enable_deterministic_inference ?? false,
    imageBatches: atLeast(version, 0, 5, 19),
    replicas: Math.max(1, server.dp_size ?? 1),
    incrementalStream: (server.stream_output || server.incremental_streaming_output) ?? false,
    attentionBackend: server.attention_backend ?? null,
    mmAttentionBackend: server.mm_attention_backend ?? null,
    schedulePolicy: server.schedule_policy ?? null,
    chunkedPrefillSize: server.chunked_prefill_size ?? null,
    maxRunningRequests: server.max_running_requests ?? null,
    notices: notices(version, server),
  };
}

function refuse(url: string, info: ModelInfo, server: ServerInfo, version: Version): void {
  const cannot = (summary: string, remedy: string): void => {
    throw new EngineError(summary, { where: url, remedy });
  };
  if (info.is_generation === false)
    cannot(`${info.model_path} does not generate text`, 'Serve a vision-language model such as Qwen3-VL.');
  if (info.has_image_understanding === false)
    cannot(`${info.model_path} cannot see pictures`, 'Serve a vision-language model such as Qwen3-VL.');
  if (server.disable_radix_cache)
    cannot(
      'the prefix cache is off, so every candidate would prefill the whole history',
      'Start the server without --disable-radix-cache.',
    );
  if (server.allow_auto_truncate)
    cannot('the server may cut prompts silently', 'Start the server without --allow-auto-truncate.');
  if (server.skip_tokenizer_init)
    cannot('prompts with pictures need the processor', 'Start the server without --skip-tokenizer-init.');
  if (server.mm_process_config && 'image' in server.mm_process_config && hasKeys(server.mm_process_config.image)) {
    cannot(
      'image sizes in --mm-process-config make the server re-tokenise prompts',
      "Set them in the model folder's preprocessor_config.json.",
    );
  }
  if (version !== null && !atLeast(version, 0, 5, 13)) {
    cannot(`SGLang ${server.version} decodes and re-tokenises prompts with pictures`, 'Use SGLang 0.5.13 or newer.');
  }
}

function notices(version: Version, server: ServerInfo): string[] {
  const list: string[] = [];
  if (version === null)
    list.push(`version ${server.version ?? 'unknown'} says nothing: candidates with pictures are scored one request per row`);
  else if (!atLeast(version, 0, 5, 19))
    list.push(`SGLang ${server.version} fails batches with pictures: they are scored one request per row`);
  if ((server.page_size ?? 1) > 1)
    list.push(`page size ${server.page_size}: up to ${(server.page_size ?? 1) - 1} cached tokens are computed again per row`);
  if ((server.dp_size ?? 1) > 1) list.push(`${server.dp_size} data-parallel replicas: each trajectory is pinned to one of them`);
  if (!server.enable_deterministic_inference)
    list.push('no deterministic inference: sampled actions cannot be repeated from a seed');
  return list;
}

/** The first path that exists; newer and older releases name them differently. */
async function get<S extends z.ZodType>(
  http: HttpClient,
  paths: readonly string[],
  schema: S,
  timeoutMs: number,
): Promise<z.infer<S> | null> {
  let reply: HttpReply<unknown> | null = null;
  for (const path of paths) {
    reply = await http.exchange({ method: 'GET', path, timeoutMs, idempotent: true }, readJson);
    if (reply.status === 404) continue;
    if (reply.status < 200 || reply.status >= 300) throw http.refusal(path, reply);
    const parsed = schema.safeParse(reply.value);
    if (parsed.success) return parsed.data;
    const [issue] = parsed.error.issues;
    throw new EngineError('unreadable answer', {
      where: `${http.url}${path}`,
      found: `${issue?.path.join('.')}: ${issue?.message}`,
    });
  }
  return null;
}

function hasKeys(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length > 0;
}
