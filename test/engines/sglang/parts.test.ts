import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import sharp from 'sharp';
import { describe, expect, it } from 'vitest';
import { batchBody, IdsText, singleBody } from '../../../src/engines/sglang/body.js';
import { serverTimes } from '../../../src/engines/sglang/calls.js';
import { createImageEncoder, toPng } from '../../../src/engines/sglang/images.js';
import { generateReplySchema } from '../../../src/engines/sglang/protocol.js';
import { DEFAULT_RETRY, type Outcome, parseRetryAfter, retryDelayMs } from '../../../src/engines/sglang/retry.js';
import { NO_NEW_TOKENS, samplingParameters } from '../../../src/engines/sglang/sampling.js';
import { SendBuffers } from '../../../src/engines/sglang/send-buffers.js';
import { readStream } from '../../../src/engines/sglang/stream.js';
import { picture, SAMPLING } from './support.js';

const FIELDS = { rid: 'r', sampling_params: NO_NEW_TOKENS, return_logprob: true };
const parsed = ({ pieces, byteLength }: { pieces: readonly Uint8Array[]; byteLength: number }): unknown => {
  const source = Buffer.concat(pieces);
  expect(source.byteLength).toBe(byteLength);
  return JSON.parse(source.toString());
};

describe('request bodies', () => {
  const images = ['"a"', '"b"'].map((text) => Buffer.from(text));
  const bytes = (...rows: string[]) => rows.map((row) => [Buffer.from(row)]);

  it('are the JSON that they would be in one piece', () => {
    expect(parsed(singleBody({ ids: [Buffer.from('1,'), Buffer.from('2')], images: [] }, FIELDS))).toEqual({
      ...FIELDS,
      input_ids: [1, 2],
    });
    expect(parsed(singleBody({ ids: [Buffer.from('1,'), Buffer.from('2')], images }, FIELDS))).toEqual({
      ...FIELDS,
      input_ids: [1, 2],
      image_data: ['a', 'b'],
    });
    expect(parsed(batchBody(bytes('1', '2,3'), [], FIELDS))).toEqual({ ...FIELDS, input_ids: [[1], [2, 3]] });
    expect(parsed(batchBody(bytes('1', '2,3', '4'), images, FIELDS))).toEqual({
      ...FIELDS,
      input_ids: [[1], [2, 3], [4]],
      image_data: [
        ['a', 'b'],
        ['a', 'b'],
        ['a', 'b'],
      ],
    });
  });

  it('write ids as they are, whatever was written before', () => {
    fc.assert(
      fc.property(fc.array(fc.array(fc.nat(200_000), { maxLength: 20 }), { maxLength: 8 }), (histories) => {
        const text = new IdsText();
        const written = histories.map((ids) => ({ ids, bytes: text.of(ids) }));
        for (const { ids, bytes } of written) expect(Buffer.from(bytes).toString()).toBe(ids.join(','));
      }),
    );
  });
});

describe('bodies joined for sending', () => {
  const bodyOf = (...texts: string[]) => {
    const pieces = texts.map((text) => Buffer.from(text));
    return { pieces, byteLength: pieces.reduce((sum, { byteLength }) => sum + byteLength, 0) };
  };

  it('hold the body and nothing else, in memory that is used again once it is given back', () => {
    const buffers = new SendBuffers();
    const first = buffers.join(bodyOf('{"a":', '1}')) as Buffer;
    const second = buffers.join(bodyOf('{"b":2}')) as Buffer;
    expect([first.toString(), second.toString()]).toEqual(['{"a":1}', '{"b":2}']);
    expect(second.buffer).not.toBe(first.buffer);
    buffers.giveBack(first);
    const third = buffers.join(bodyOf('{"long":', `"${'x'.repeat(1000)}"`, '}')) as Buffer;
    expect(third.buffer).toBe(first.buffer);
    expect(JSON.parse(third.toString())).toEqual({ long: 'x'.repeat(1000) });
    expect(second.toString()).toBe('{"b":2}');
  });

  it('stay in pieces where a copy would cost more', () => {
    expect(new SendBuffers().join(bodyOf('x'.repeat(2 ** 21), 'x'))).toBeNull();
  });
});

describe('pictures', () => {
  it('are encoded once, also for concurrent calls, and forgotten by age', async () => {
    const [red, green, blue] = await Promise.all(['red', 'green', 'blue'].map((colour) => picture(200, 200, colour)));
    const encoder = createImageEncoder({ kind: 'data' }, 3_000);
    const [first] = await encoder.encode([red as NonNullable<typeof red>]);
    const [again, other] = await encoder.encode([red, green] as NonNullable<typeof red>[]);
    expect(again).toBe(first);
    expect(JSON.parse(Buffer.from(other as Uint8Array).toString())).toBe(
      `data:image/png;base64,${Buffer.from(green?.bytes ?? []).toString('base64')}`,
    );
    await encoder.encode([red, blue] as NonNullable<typeof red>[]); // green is the oldest now
    const [kept] = await encoder.encode([red as NonNullable<typeof red>]);
    expect(kept).toBe(first);
    const [fresh] = await encoder.encode([green as NonNullable<typeof red>]);
    expect(fresh).not.toBe(other);
    expect(fresh).toEqual(other);
  });

  it('become 8-bit RGB PNGs of the same pixels', async () => {
    const noise = Buffer.from(Array.from({ length: 60 * 40 * 3 }, (_, i) => (i * 7919) % 256));
    const raw = { width: 60, height: 40, channels: 3 as const };
    const jpeg = await sharp(noise, { raw }).jpeg().toBuffer();
    const grey = await sharp(noise, { raw }).greyscale().png().toBuffer();
    const transparent = await sharp(noise, { raw }).ensureAlpha(0.5).png().toBuffer();
    for (const bytes of [jpeg, grey, transparent]) {
      const png = await toPng({ sha256: 'x', bytes, mediaType: 'image/any', width: 60, height: 40 });
      expect(await sharp(png).metadata()).toMatchObject({ format: 'png', width: 60, height: 40, channels: 3, depth: 'uchar' });
      const pixels = (source: Uint8Array) => sharp(source).toColourspace('srgb').removeAlpha().raw().toBuffer();
      expect(await pixels(png)).toEqual(await pixels(bytes));
    }
    await expect(
      toPng({ sha256: 'abc', bytes: Buffer.from('no picture'), mediaType: 'image/jpeg', width: 1, height: 1 }),
    ).rejects.toThrow(/image abc: cannot decode the picture/);
  });

  it('can be left in a folder that the server reads', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'ssr-images-'));
    const image = await picture(64, 64, 'red', 'jpeg');
    const [path] = await createImageEncoder({ kind: 'path', folder }, 1e6).encode([image]);
    expect(JSON.parse(Buffer.from(path as Uint8Array).toString())).toBe(join(folder, `${image.sha256}.png`));
    const [url] = await createImageEncoder({ kind: 'url', folder, baseUrl: 'http://host/images/' }, 1e6).encode([image]);
    expect(JSON.parse(Buffer.from(url as Uint8Array).toString())).toBe(`http://host/images/${image.sha256}.png`);
    expect(await readdir(folder)).toEqual([`${image.sha256}.png`]);
    expect((await readFile(join(folder, `${image.sha256}.png`))).subarray(1, 4).toString()).toBe('PNG');
    await rm(folder, { recursive: true });
  });
});

describe('sampling parameters', () => {
  it('say everything, so that no default of a server matters', () => {
    expect(samplingParameters({ ...SAMPLING, temperature: 0.7, topK: 20, topP: 0.8, bannedIds: [5] })).toEqual({
      max_new_tokens: 8,
      temperature: 0.7,
      top_p: 0.8,
      top_k: 20,
      min_p: 0,
      frequency_penalty: 0,
      presence_penalty: 0,
      repetition_penalty: 1,
      n: 1,
      ignore_eos: false,
      skip_special_tokens: false,
      sampling_seed: 7,
      stop_token_ids: [497],
      logit_bias: { 5: -10_000 },
    });
  });
});

describe('retries', () => {
  const reply = (status: number, retryAfterMs: number | null = null): Outcome<never> => ({
    kind: 'reply',
    status,
    retryAfterMs,
    value: null,
    text: '',
  });
  const unreached: Outcome<never> = { kind: 'unreached', error: new Error('x') };
  const dropped: Outcome<never> = { kind: 'dropped', error: new Error('x') };
  const ask = (outcome: Outcome<never>, idempotent: boolean, sent = 1) =>
    retryDelayMs(outcome, sent, { idempotent, retryServerErrors: true }, DEFAULT_RETRY, () => 1);

  it('are for what surely was not done, or may be done twice', () => {
    const table = [unreached, dropped, reply(429), reply(503), reply(500), reply(504), reply(400), reply(200)].map((outcome) => [
      ask(outcome, true) !== null,
      ask(outcome, false) !== null,
    ]);
    expect(table).toEqual([
      [true, true],
      [true, false],
      [true, true],
      [true, true],
      [true, false],
      [true, false],
      [false, false],
      [false, false],
    ]);
    expect(ask({ kind: 'timeout', alive: true }, true)).toBeNull();
    expect(ask(reply(500), true, 2)).toBeNull();
  });

  it('wait longer each time, within bounds, and as long as the server asks', () => {
    expect([1, 2, 3].map((sent) => ask(unreached, true, sent))).toEqual([250, 500, 1000]);
    expect(ask(unreached, true, 4)).toBeNull();
    expect(ask(reply(429, 7_000), true)).toBe(7_000);
    expect(ask(reply(429, 61_000), true)).toBeNull();
    expect(retryDelayMs(unreached, 1, { idempotent: true, retryServerErrors: true }, DEFAULT_RETRY, () => 0)).toBe(125);
  });

  it('read Retry-After as seconds or as a date', () => {
    expect(parseRetryAfter('2', 0)).toBe(2_000);
    expect(parseRetryAfter('Thu, 01 Jan 1970 00:00:10 GMT', 4_000)).toBe(6_000);
    expect(parseRetryAfter('soon', 0)).toBeNull();
    expect(parseRetryAfter(undefined, 0)).toBeNull();
  });
});

describe('server times', () => {
  const reply = (meta: object) => generateReplySchema.parse({ meta_info: { finish_reason: null, prompt_tokens: 1, ...meta } });

  it('span the rows, which overlap, and are absent where a row does not say', () => {
    const rows = [
      reply({
        e2e_latency: 0.2,
        request_received_ts: 10,
        api_server_dispatch_finish_ts: 10.01,
        request_finished_ts: 10.2,
        forward_entry_time: 10.05,
        prefill_finished_time: 10.1,
      }),
      reply({
        e2e_latency: 0.3,
        request_received_ts: 10.1,
        api_server_dispatch_finish_ts: 10.12,
        request_finished_ts: 10.4,
        forward_entry_time: 10.2,
        prefill_finished_time: 10.35,
      }),
    ];
    expect(serverTimes(rows).serverMs).toBeCloseTo(400);
    expect(serverTimes(rows).dispatchMs).toBeCloseTo(120);
    expect(serverTimes(rows).forwardMs).toBeCloseTo(300);
    expect(serverTimes([reply({ e2e_latency: 0.2 }), reply({ e2e_latency: 0.3 })])).toEqual({
      serverMs: 300,
      dispatchMs: null,
      forwardMs: null,
    });
    expect(serverTimes([reply({})])).toEqual({ serverMs: null, dispatchMs: null, forwardMs: null });
  });
});

describe('event streams', () => {
  const event = (ids: number[], finish: unknown) =>
    Buffer.from(
      `data: ${JSON.stringify({ output_ids: ids, meta_info: { finish_reason: finish, prompt_tokens: 1, output_token_logprobs: ids.map((id) => [-id, id, null]) } })}\n\n`,
    );
  const body = async function* (...pieces: Buffer[]) {
    yield* pieces;
  };

  it.each([
    ['everything so far', false, [[1], [1, 2], [1, 2, 3]]],
    ['only what is new', true, [[1], [2], [3]]],
  ] as const)('give each token once when the server sends %s', async (_, incremental, parts) => {
    const told: number[] = [];
    const pieces = parts.map((ids, i) => event([...ids], i === 2 ? { type: 'length' } : null));
    const reply = await readStream(incremental, 'here', ({ id }) => told.push(id))(
      body(...pieces, Buffer.from('data: [DONE]\n\n')),
    );
    expect(told).toEqual([1, 2, 3]);
    expect(reply.output_ids).toEqual([1, 2, 3]);
    expect(reply.meta_info.output_token_logprobs?.length).toBe(3);
  });

  it('report a failure that arrives as an event', async () => {
    const failure = Buffer.from('data: {"error":{"message":"out of memory"}}\n\n');
    await expect(readStream(false, 'here', () => undefined)(body(event([1], null), failure))).rejects.toThrow(
      /here: the server failed during the stream, found out of memory/,
    );
    await expect(readStream(false, 'here', () => undefined)(body(event([1, 2], null), event([1], null)))).rejects.toThrow(
      /the stream lost tokens/,
    );
  });
});
