// What is sent to and read from SGLang's /generate and information endpoints: request types and reply schemas, no behaviour.
import { z } from 'zod';

/** The sampling parameters this client may send. Any other key makes the server answer 500 and close the connection. */
export interface SamplingParameters {
  readonly max_new_tokens: number;
  readonly temperature: number;
  readonly top_p: number;
  readonly top_k: number;
  readonly min_p: number;
  readonly frequency_penalty: number;
  readonly presence_penalty: number;
  readonly repetition_penalty: number;
  readonly n: 1;
  readonly ignore_eos: false;
  readonly skip_special_tokens: false;
  readonly sampling_seed?: number;
  readonly stop_token_ids?: readonly number[];
  readonly logit_bias?: Readonly<Record<string, number>>;
}

/** Everything of a /generate request but the ids and pictures, which are spliced in as bytes (see body.ts). */
export interface GenerateFields {
  readonly rid: string;
  readonly sampling_params: SamplingParameters;
  readonly return_logprob: boolean;
  readonly logprob_start_len?: number;
  readonly return_prompt_token_ids?: true;
  readonly stream?: true;
  readonly extra_key?: string;
  readonly routed_dp_rank?: number;
}

const time = z.number().nullish();
const count = z.number().int().nonnegative();
/** [log-prob or null, id, text or null]; null is also how the server writes NaN and infinities. */
const logprob = z.tuple([z.number().nullable(), z.number().int()]).rest(z.unknown());

const finishReason = z.object({
  type: z.string(),
  matched: z.union([z.number(), z.string()]).nullish().catch(null),
  message: z.string().nullish(),
  status_code: z.number().nullish(),
});

export const metaSchema = z.object({
  id: z.string().optional(),
  finish_reason: finishReason.nullable(),
  prompt_tokens: count,
  completion_tokens: count.optional(),
  cached_tokens: count.optional(),
  image_tokens: count.nullish(),
  weight_version: z.union([z.string(), z.number()]).nullish(),
  input_token_logprobs: z.array(logprob).nullish(),
  output_token_logprobs: z.array(logprob).nullish(),
  e2e_latency: time,
  queue_time: time,
  forward_entry_time: time,
  prefill_finished_time: time,
  request_received_ts: time,
  api_server_dispatch_finish_ts: time,
  request_finished_ts: time,
});

export const generateReplySchema = z.object({
  text: z.string().optional(),
  output_ids: z.array(count).nullish(),
  prompt_token_ids: z.array(z.number().int()).nullish(),
  meta_info: metaSchema,
});

export type GenerateReply = z.infer<typeof generateReplySchema>;
export type LogprobEntry = z.infer<typeof logprob>;

export const modelInfoSchema = z.object({
  model_path: z.string(),
  served_model_name: z.string().nullish(),
  is_generation: z.boolean().optional(),
  weight_version: z.union([z.string(), z.number()]).nullish(),
  has_image_understanding: z.boolean().nullish(),
  model_type: z.string().nullish(),
  architectures: z.array(z.string()).nullish(),
});

/** Some 480 keys, launch arguments and keys among them: only these are read, nothing else is kept or shown. */
export const serverInfoSchema = z.object({
  version: z.string().nullish(),
  page_size: count.nullish(),
  disable_radix_cache: z.boolean().nullish(),
  allow_auto_truncate: z.boolean().nullish(),
  skip_tokenizer_init: z.boolean().nullish(),
  mm_process_config: z.record(z.string(), z.unknown()).nullish(),
  enable_deterministic_inference: z.boolean().nullish(),
  stream_output: z.boolean().nullish(),
  incremental_streaming_output: z.boolean().nullish(),
  enable_metrics: z.boolean().nullish(),
  chunked_prefill_size: z.number().nullish(),
  schedule_policy: z.string().nullish(),
  attention_backend: z.string().nullish(),
  mm_attention_backend: z.string().nullish(),
  dtype: z.string().nullish(),
  dp_size: count.nullish(),
  tp_size: count.nullish(),
  context_length: count.nullish(),
  max_total_num_tokens: count.nullish(),
  max_req_input_len: count.nullish(),
  max_running_requests: count.nullish(),
});

export const modelsSchema = z.object({ data: z.array(z.object({ id: z.string(), max_model_len: count.nullish() })) });

export const updateWeightsSchema = z.object({ success: z.boolean(), message: z.string() });

export const loadsSchema = z.object({ loads: z.array(z.object({ num_running_reqs: count, num_waiting_reqs: count })) });
export const oldLoadsSchema = z.array(z.object({ num_reqs: count }));

export type ModelInfo = z.infer<typeof modelInfoSchema>;
export type ServerInfo = z.infer<typeof serverInfoSchema>;

const errorSchema = z.union([
  z.object({ error: z.object({ message: z.string() }) }).transform(({ error }) => error.message),
  z.object({ error: z.string() }).transform(({ error }) => error),
  z.object({ message: z.string() }).transform(({ message }) => message),
]);

const LONGEST_MESSAGE = 300;

/** The server's own words from any of its error bodies, on one line, without pictures. */
export function errorMessage(body: string): string {
  const parsed = errorSchema.safeParse(jsonOrNull(body));
  const text = (parsed.success ? parsed.data : body)
    .replace(/base64,[A-Za-z0-9+/=]+/g, 'base64,…')
    .replace(/\s+/g, ' ')
    .trim();
  return text.length <= LONGEST_MESSAGE ? text : `${text.slice(0, LONGEST_MESSAGE)}…`;
}

function jsonOrNull(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
