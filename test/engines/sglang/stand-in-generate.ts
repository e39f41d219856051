// /generate of the stand-in: SGLang's validation with its deadly gaps, cache accounting, log-prob windows, streaming and aborts.
import type { ServerResponse } from 'node:http';
import type { Engine, EngineInfo, Sampling, TokenLogprob } from '../../../src/types.js';
import { json, type StandInOptions, schemaError } from './stand-in.js';
import { corrupt, type Fault, type Reply } from './stand-in-faults.js';
import { decodeImage, type Entry, PrefixCache, type Prompt, StandInModel } from './stand-in-model.js';

type Body = Record<string, unknown>;
export type Deadly = 'die' | 'internal-error' | 'done';

const KEPT_TRAJECTORIES = 128;
const SAMPLING_KEYS = new Set(
  (
    'max_new_tokens stop stop_token_ids stop_regex temperature top_p top_k min_p frequency_penalty presence_penalty repetition_penalty min_new_tokens n ' +
    'json_schema regex ebnf structural_tag ignore_eos skip_special_tokens spaces_between_special_tokens no_stop_trim stream_interval logit_bias sampling_seed custom_params'
  ).split(' '),
);

export class Generator {
  weights: string;
  readonly #model: StandInModel;
  readonly #engine: Engine;
  readonly #trajectories = new Set<string>();
  readonly #info: EngineInfo;
  readonly #options: StandInOptions;
  readonly #cache = new PrefixCache();
  readonly #running = new Map<string, AbortController>();

  constructor(engine: Engine, info: EngineInfo, options: StandInOptions) {
    this.#engine = engine;
    this.#model = new StandInModel(engine, info, options.imagePadId);
    this.#info = info;
    this.#options = options;
    this.weights = info.weights;
  }

  get running(): number {
    return this.#running.size;
  }

  abort(rid: string, all: boolean): void {
    if (!all && !this.#running.has(rid)) return; // unknown names are ignored with status 200
    for (const [name, controller] of this.#running) if (all || name.startsWith(rid)) controller.abort();
  }

  flush(): boolean {
    if (this.#running.size > 0) return false;
    this.#cache.clear();
    return true;
  }

  async generate(body: Body, trajectory: string, fault: Fault | null, response: ServerResponse): Promise<Deadly> {
    const refuse = (status: number, value: unknown): Deadly => {
      json(response, status, value);
      return 'done';
    };
    const bad = (message: string): Deadly => refuse(400, { error: { message } });
    const inputs = body.input_ids as number[] | number[][];
    if (!Array.isArray(inputs) || inputs.length === 0) return bad('input_ids cannot be empty.');
    const batch = Array.isArray(inputs[0]);
    const rows = (batch ? inputs : [inputs]) as number[][];
    if (rows.flat().some((id) => !Number.isInteger(id)))
      return refuse(400, schemaError('elements must be int or list; got float'));
    const sampling = (body.sampling_params ?? {}) as Body;
    if (Object.keys(sampling).some((key) => !SAMPLING_KEYS.has(key))) return 'internal-error';
    if (rows.flat().some((id) => id < 0 || id >= this.#info.vocabularySize)) return 'die';
    const start = (body.logprob_start_len ?? -1) as number;
    if (start < -1) return 'die';

    const items = (body.image_data ?? []) as (string | string[])[];
    if (batch && items.length > 0 && this.#breaksImageBatches()) return 'internal-error';
    if (batch && items.length > 0 && items.length !== rows.length)
      return bad('The length of image_data should be equal to the batch size.');
    const itemRows = rows.map((_, i) => (batch ? [items[i] ?? []].flat() : (items as string[])));
    if (itemRows.flat().some((item) => item.startsWith('/9j/'))) return 'internal-error';
    const images = await Promise.all(itemRows.map((row) => Promise.all(row.map(decodeImage))));
    const prompts = rows.map((ids, i): Prompt => ({ trajectory, ids, images: images[i] ?? [] }));
    for (const prompt of prompts) {
      const pads = prompt.ids.filter((id) => id === this.#options.imagePadId).length;
      if (prompt.images.length > 0 && pads > prompt.images.length) {
        const expanded = prompt.ids.some((id, i) => id === this.#options.imagePadId && prompt.ids[i + 1] === id);
        return expanded ? 'done' : 'internal-error'; // already expanded ids: no answer, ever
      }
    }
    const lengths = prompts.map((prompt) => this.#model.expand(prompt).length);
    const over = lengths.find((length) => body.return_logprob === true && start > length);
    if (over !== undefined)
      return bad(`req.logprob_start_len=${start} is higher than the number of input tokens len(req.origin_input_ids)=${over}.`);
    const maxNewTokens = (sampling.max_new_tokens ?? 128) as number;
    const longest = Math.max(...lengths) + maxNewTokens;
    if (longest > this.#info.contextLength)
      return bad(`Requested token count exceeds the model's maximum context length of ${this.#info.contextLength} tokens.`);
    const rid = String(body.rid ?? Math.random());
    const names = batch ? rows.map((_, i) => `${rid}_${i}`) : [rid];
    this.#touch(trajectory);
    await this.#run(body, prompts, lengths, names, batch, fault, response);
    return 'done';
  }

  /** Nobody tells a server that a trajectory has ended: the engine behind forgets those that were not heard of for longest. */
  #touch(trajectory: string): void {
    this.#trajectories.delete(trajectory);
    this.#trajectories.add(trajectory);
    for (const oldest of this.#trajectories) {
      if (this.#trajectories.size <= KEPT_TRAJECTORIES) break;
      this.#trajectories.delete(oldest);
      void this.#engine.release(oldest);
    }
  }

  async #run(
    body: Body,
    prompts: Prompt[],
    lengths: number[],
    names: string[],
    batch: boolean,
    fault: Fault | null,
    response: ServerResponse,
  ): Promise<void> {
    const received = Date.now() / 1000;
    const controller = new AbortController();
    for (const name of names) this.#running.set(name, controller);
    const namespace = String(body.extra_key ?? '');
    const withLogprob = body.return_logprob === true;
    const start = (body.logprob_start_len ?? -1) as number;
    const page = this.#options.pageSize ?? 1;
    const keys = prompts.map((prompt) => this.#model.keys(prompt));
    // Rows of one batch cannot see each other's work, so all look first.
    const cached = keys.map((row, i) => {
      const most = Math.min((lengths[i] as number) - 1, withLogprob && start >= 0 ? start : Number.POSITIVE_INFINITY);
      return Math.floor(Math.min(this.#cache.match(namespace, row), most) / page) * page;
    });
    const entered = Date.now() / 1000;
    const reply = (
      i: number,
      tokens: readonly TokenLogprob[],
      reason: Record<string, unknown> | null,
      entries: Entry[],
    ): Reply => {
      const prompt = prompts[i] as Prompt;
      const now = Date.now() / 1000;
      const imageTokens = this.#model.expand(prompt).filter(({ image }) => image !== null).length;
      return {
        text: '',
        output_ids: tokens.map(({ id }) => id),
        ...(body.return_prompt_token_ids === true && { prompt_token_ids: this.#model.expand(prompt).map(({ id }) => id) }),
        meta_info: {
          id: names[i],
          finish_reason: reason,
          prompt_tokens: lengths[i] as number,
          completion_tokens: tokens.length,
          cached_tokens: cached[i],
          ...(imageTokens > 0 && { image_tokens: imageTokens }),
          weight_version: this.weights,
          e2e_latency: now - received,
          ...(this.#options.metrics && {
            queue_time: 0,
            forward_entry_time: entered,
            prefill_finished_time: now,
            request_received_ts: received,
            request_finished_ts: now,
          }),
          ...(withLogprob && {
            input_token_logprobs: entries,
            output_token_logprobs: tokens.map(({ logprob, id }): Entry => [logprob, id, null]),
          }),
        },
      };
    };
    try {
      const replies = await this.#compute(body, prompts, controller.signal, reply, fault, response);
      prompts.forEach((_, i) => {
        const tokens = replies[i]?.output_ids ?? [];
        this.#cache.insert(namespace, [...(keys[i] ?? []), ...tokens.slice(0, -1).map(String)]);
      });
      const sent = fault ? corrupt(replies, fault) : replies;
      if (body.stream === true) response.end('data: [DONE]\n\n');
      else json(response, 200, batch ? sent : sent[0]);
    } catch (error) {
      if (!controller.signal.aborted) throw error;
      const aborted = prompts.map((_, i) =>
        reply(i, [], { type: 'abort', message: 'Aborted', status_code: null, err_type: null }, []),
      );
      json(response, 200, batch ? aborted : aborted[0]);
    } finally {
      for (const name of names) this.#running.delete(name);
    }
  }

  async #compute(
    body: Body,
    prompts: readonly Prompt[],
    signal: AbortSignal,
    reply: (i: number, tokens: readonly TokenLogprob[], reason: Record<string, unknown> | null, entries: Entry[]) => Reply,
    fault: Fault | null,
    response: ServerResponse,
  ): Promise<Reply[]> {
    const parameters = (body.sampling_params ?? {}) as Body;
    const start = (body.logprob_start_len ?? -1) as number;
    const length = { type: 'length', length: parameters.max_new_tokens };
    if (parameters.max_new_tokens === 0) {
      if (body.return_logprob === true && start >= 0) {
        const entries = await this.#model.logprobs(prompts, start, signal);
        return entries.map((row, i) => reply(i, [], length, row));
      }
      await Promise.all(prompts.map((prompt) => this.#model.prefill(prompt, signal)));
      return prompts.map((_, i) => reply(i, [], length, []));
    }
    const stream = body.stream === true;
    if (stream) response.writeHead(200, { 'content-type': 'text/event-stream' });
    return Promise.all(
      prompts.map(async (prompt, i) => {
        const tokens: TokenLogprob[] = [];
        const tell = (reason: Record<string, unknown> | null): Reply => {
          const part = reply(i, tokens, reason, []);
          if (stream) response.write(`data: ${JSON.stringify(part)}\n\n`);
          return part;
        };
        const onToken = (token: TokenLogprob): void => {
          tokens.push(token);
          tell(null);
          if (fault?.kind === 'cut' && tokens.length === 2) response.socket?.destroy();
        };
        const generation = await this.#model.generate(prompt, samplingOf(parameters), signal, onToken);
        const stop = { type: 'stop', matched: generation.tokens.at(-1)?.id };
        tokens.splice(0, tokens.length, ...generation.tokens);
        return tell(generation.finishReason === 'stop' ? stop : length);
      }),
    );
  }

  #breaksImageBatches(): boolean {
    const patch = /^0\.5\.(\d+)/.exec(this.#options.version ?? '0.5.19')?.[1];
    return patch !== undefined && Number(patch) >= 11 && Number(patch) <= 18;
  }
}

function samplingOf(parameters: Body): Sampling {
  const topK = (parameters.top_k ?? -1) as number;
  return {
    maxNewTokens: (parameters.max_new_tokens ?? 128) as number,
    temperature: (parameters.temperature ?? 1) as number,
    topP: (parameters.top_p ?? 1) as number,
    topK: topK === -1 ? 0 : topK,
    seed: (parameters.sampling_seed ?? 0) as number,
    stopIds: (parameters.stop_token_ids ?? []) as number[],
    bannedIds: Object.keys((parameters.logit_bias ?? {}) as Body).map(Number),
  };
}
