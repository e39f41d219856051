import { readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { checkEcho, checkFinished, checkPrompt, generatedTokens, scoredRow } from '../../../src/engines/sglang/checks.js';
import { HttpClient } from '../../../src/engines/sglang/http.js';
import { inspectServer } from '../../../src/engines/sglang/preflight.js';
import {
  errorMessage,
  type GenerateReply,
  generateReplySchema,
  updateWeightsSchema,
} from '../../../src/engines/sglang/protocol.js';
import { readStream } from '../../../src/engines/sglang/stream.js';
import { REAL_SURROUNDINGS } from '../../../src/engines/sglang/surroundings.js';
import { EngineError, EngineUnavailableError } from '../../../src/errors.js';
import type { TokenLogprob } from '../../../src/types.js';

const folder = new URL('../../golden/sglang/', import.meta.url).pathname;
const names = readdirSync(folder).filter((name) => name.endsWith('.json'));
const IMAGE_PAD = 282;
const MODEL = {
  folder: '',
  vocabularySize: 512,
  contextLength: 32768,
  imagePadId: IMAGE_PAD,
  visionIds: [279, 280, 282],
  geometry: { patchSize: 16, mergeSize: 2, minPixels: 1, maxPixels: 1 },
};

interface Exchange {
  readonly request: { readonly method: string; readonly path: string; readonly body: Record<string, unknown> };
  readonly status: number;
  readonly response: unknown;
}

function exchange(name: string): Exchange {
  return JSON.parse(readFileSync(join(folder, name), 'utf8')) as Exchange;
}

/** Replies of a fixture in row order, with the ids that were sent. */
function rows(name: string): { reply: GenerateReply; ids: number[] }[] {
  const { request, response } = exchange(name);
  const replies = (Array.isArray(response) ? response : [response]).map((value) => generateReplySchema.parse(value));
  const inputs = request.body.input_ids as number[] | number[][];
  const idRows = (Array.isArray(inputs[0]) ? inputs : [inputs]) as number[][];
  return replies.map((reply, i) => ({ reply, ids: idRows[i] as number[] }));
}

const client = new HttpClient({ url: 'http://server:30000', surroundings: REAL_SURROUNDINGS });

describe('recorded good replies', () => {
  const good = names.filter((name) => name.startsWith('generate_'));

  it.each(good)('%s is understood', (name) => {
    expect(rows(name).length).toBeGreaterThan(0);
  });

  it.each([
    'generate_score_batch_text.json',
    'generate_score_single_text.json',
    'generate_score_text_in_logprobs.json',
    'generate_score_row_image.json',
    'generate_score_batch_image.json',
  ])('%s gives the log-probs of exactly the continuation', (name) => {
    const start = exchange(name).request.body.logprob_start_len as number;
    for (const { reply, ids } of rows(name)) {
      const count = reply.meta_info.prompt_tokens - (start + 1);
      const continuation = ids.slice(-count);
      const row = scoredRow(reply, continuation, ids.at(-count - 1) as number, name);
      expect(row.map(({ id }) => id)).toEqual(continuation);
      expect(row.every(({ logprob }) => logprob < 0)).toBe(true);
    }
  });

  it('scores a row as the same row in a batch and as the tail of the whole prompt, up to numerics', () => {
    const tail = (name: string) =>
      rows(name)[0]
        ?.reply.meta_info.input_token_logprobs?.slice(-5)
        .map(([logprob]) => logprob as number) ?? [];
    const [row, batch, whole] = ['row_image', 'batch_image', 'image_fullprompt'].map((name) =>
      tail(`generate_score_${name}.json`),
    ) as [number[], number[], number[]];
    row.forEach((logprob, i) => {
      expect(Math.abs(logprob - (batch[i] as number))).toBeLessThan(0.03);
      expect(Math.abs(logprob - (whole[i] as number))).toBeLessThan(0.03);
    });
  });

  it('recognises an undrifted prompt with a picture, and its echo', () => {
    const [{ reply, ids } = { reply: null, ids: [] as number[] }] = rows('generate_warm_image.json');
    const prompt = { positions: 30, sentIds: ids.length, imageCount: 1 };
    expect(() => checkPrompt(reply as GenerateReply, prompt, 'here')).not.toThrow();
    expect(() => checkEcho(reply?.prompt_token_ids ?? [], ids, IMAGE_PAD, 'here')).not.toThrow();
    expect(() => checkPrompt(reply as GenerateReply, { ...prompt, positions: 31 }, 'here')).toThrow(
      /here: the server counted another prompt; expected 31 prompt tokens/,
    );
    expect(() => checkPrompt(reply as GenerateReply, { ...prompt, sentIds: 27 }, 'here')).toThrow(
      /the text of the prompt drifted/,
    );
    expect(() => checkEcho(reply?.prompt_token_ids ?? [], [...ids.slice(0, 3), 9, ...ids.slice(4)], IMAGE_PAD, 'here')).toThrow(
      /position 3: the server saw other ids/,
    );
  });

  it('takes actions from ids and log-probs that agree', () => {
    const limits = { vocabularySize: 512, maxNewTokens: 6, bannedIds: [] };
    const sampled = rows('generate_action_logprob.json')[0]?.reply as GenerateReply;
    expect(generatedTokens(sampled, limits, 'here').map(({ id }) => id)).toEqual([370, 78, 206, 191, 369, 466]);
    expect(() => generatedTokens(sampled, { ...limits, bannedIds: [206] }, 'here')).toThrow(/a banned id was generated/);
    const withoutLogprobs = rows('generate_action_greedy.json')[0]?.reply as GenerateReply;
    expect(() => generatedTokens(withoutLogprobs, limits, 'here')).toThrow(
      /generated ids and log-probs differ in number; expected 6 log-probs, found 0/,
    );
  });

  it('keeps the stop id in the ids', () => {
    const reply = rows('generate_stop_token.json')[0]?.reply as GenerateReply;
    expect(checkFinished(reply, 'here')).toBe('stop');
    expect(reply.output_ids).toEqual([100]);
  });

  it('never takes an aborted request for a result', () => {
    const reply = rows('generate_aborted.json')[0]?.reply as GenerateReply;
    expect(() => checkFinished(reply, 'here')).toThrow(
      /here: the server ended the request; expected stop or length, found abort: Aborted/,
    );
  });

  it('reads the event stream however its bytes are cut', async () => {
    const bytes = readFileSync(join(folder, 'generate_stream.sse'));
    for (const size of [1, 7, 1000, bytes.byteLength]) {
      const told: TokenLogprob[] = [];
      const reply = await readStream(false, 'here', (token) => told.push(token))(cut(bytes, size));
      expect(reply.output_ids).toEqual([100, 311, 261, 157]);
      expect(told).toEqual([]); // recorded without log-probs: nothing can be told
    }
    await expect(readStream(false, 'here', () => undefined)(cut(bytes.subarray(0, 1000), 100))).rejects.toThrow('ended early');
  });
});

describe('a scoring reply with one thing wrong', () => {
  const { reply, ids } = rows('generate_score_single_text.json')[0] as { reply: GenerateReply; ids: number[] };
  const continuation = ids.slice(-5);
  const last = ids.at(-6) as number;
  const put = (at: number, logprob: number | null, id: number) => (entries: [number | null, number][]) => {
    entries[at] = [logprob, id];
  };
  const changed = (change: (entries: [number | null, number][]) => void): GenerateReply => {
    const copy = structuredClone(reply);
    change(copy.meta_info.input_token_logprobs as unknown as [number | null, number][]);
    return copy;
  };
  const cases: readonly (readonly [string, (entries: [number | null, number][]) => void, RegExp])[] = [
    ['a missing entry', (entries) => entries.pop(), /wrong number of log-probs; expected 6 .*found 5/],
    ['an entry too many', (entries) => entries.unshift([null, 1]), /expected 6 .*found 7/],
    ['a number at the boundary', put(0, -1, 198), /misaligned; expected null at the boundary, found -1/],
    ['another id at the boundary', put(0, null, 3), /misaligned; expected id 198 at the boundary, found id 3/],
    ['a positive number', put(2, 0.5, 257), /token 1: not a log-probability.*found 0.5/],
  ];

  it.each(cases)('%s is an error', (_, change, message) => {
    expect(() => scoredRow(changed(change), continuation, last, 'here')).toThrow(message);
  });

  it.each([1, 2, 3, 4, 5])('another id or no number at entry %i is an error', (at) => {
    const otherId = changed(put(at, -1, (continuation[at - 1] as number) + 1));
    expect(() => scoredRow(otherId, continuation, last, 'here')).toThrow(`token ${at - 1}: log-prob of another token`);
    const noNumber = changed(put(at, null, continuation[at - 1] as number));
    expect(() => scoredRow(noNumber, continuation, last, 'here')).toThrow(/not a log-probability.*null/);
  });

  it('is fine when nothing is', () => {
    expect(scoredRow(reply, continuation, last, 'here').length).toBe(5);
  });
});

describe('recorded bad replies', () => {
  const expected: Readonly<Record<string, RegExp>> = {
    'err_bad_image.json': /400 An exception occurred while loading IMAGE data at index 0.*cannot identify image file/,
    'err_bad_json.json': /400 1 validation error:.*JSON decode error/,
    'err_bogus_sampling_param.json': /500 Internal Server Error/,
    'err_dup_rid.json': /400 Duplicate request IDs detected/,
    'err_empty_ids.json': /400 input_ids cannot be empty/,
    'err_image_batch_len.json': /400 The length of image_data should be equal to the batch size/,
    'err_logprob_start_too_big.json': /400 req.logprob_start_len=27 is higher than the number of input tokens/,
    'err_raw_jpeg_b64_as_path.json': /500 Internal Server Error/,
    'err_validation.json': /400 1 validation error:.*elements must be int or list; got float/,
    'flush_busy.json': /400 Flush cache failed/,
    'update_weights_bad.json': /400 Failed to get weights iterator/,
  };

  it('has an expectation for each', () => {
    expect(Object.keys(expected).sort()).toEqual(names.filter((name) => exchange(name).status >= 400).sort());
  });

  it.each(Object.entries(expected))('%s becomes an error in one line', (name, message) => {
    const { status, response, request } = exchange(name);
    const text = typeof response === 'string' ? response : JSON.stringify(response);
    const error = client.refusal(request.path, { status, text, attempts: 1 });
    expect(error.message).toMatch(message);
    expect(error.message).toContain(`http://server:30000${request.path}`);
    expect(error.message).not.toMatch(/\n|base64,[A-Za-z0-9]/);
    expect(error).toBeInstanceOf(EngineError);
    expect(error).not.toBeInstanceOf(EngineUnavailableError);
  });

  it('comes with a remedy where the words alone are none', () => {
    const refusal = (message: string) =>
      client.refusal('/generate', { status: 400, text: JSON.stringify({ error: { message } }), attempts: 1 }).message;
    expect(refusal('Image count 3 exceeds limit 1 per request.')).toMatch(/--limit-mm-data-per-request/);
    expect(refusal("Requested token count exceeds the model's maximum context length of 4096 tokens.")).toMatch(
      /--context-length/,
    );
    expect(refusal('something else')).toMatch(/found 400 something else$/);
  });

  it('says whether weights were updated', () => {
    expect(updateWeightsSchema.parse(exchange('update_weights_ok.json').response).success).toBe(true);
    expect(updateWeightsSchema.parse(exchange('update_weights_bad.json').response).success).toBe(false);
  });

  it('shortens a message that would fill the screen', () => {
    expect(errorMessage('x'.repeat(5000)).length).toBeLessThan(320);
  });
});

describe('the recorded information pages', () => {
  const servers: ReturnType<typeof createServer>[] = [];
  afterEach(() => {
    for (const server of servers.splice(0)) server.close();
  });

  it('pass the preflight, with what an unnumbered build cannot be trusted with', async () => {
    const server = createServer((request, response) => {
      const found = ['model_info.json', 'server_info.json', 'v1_models.json']
        .map(exchange)
        .find(({ request: { path } }) => path === request.url);
      response.writeHead(found ? 200 : 404).end(JSON.stringify(found?.response ?? {}));
    });
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const http = new HttpClient({ url, surroundings: REAL_SURROUNDINGS });
    const facts = await inspectServer(http, MODEL, 5_000);
    await http.close();
    expect(facts).toMatchObject({
      url,
      version: '0.0.0.dev0',
      model: '/models/tiny',
      weights: 'default',
      pageSize: 1,
      contextLength: 32762,
      imageBatches: false,
      replicas: 1,
      deterministic: false,
    });
    expect(facts.notices[0]).toMatch(/version 0.0.0.dev0 says nothing: candidates with pictures are scored one request per row/);
  });
});

async function* cut(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.byteLength; at += size) yield bytes.subarray(at, at + size);
}
