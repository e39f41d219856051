// A server for the harness benchmark that speaks enough of SGLang's protocol and computes nothing: it answers at once, or after a
// fixed time per call. It runs as a process of its own, so that its work is not the harness's.
//   tsx instant-server.ts DELAY_MS IMAGE_PAD_ID TOKENS_PER_IMAGE ACTION_IDS(comma-separated)
import { createServer, type ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

const [delayMs = 0, imagePadId = 0, tokensPerImage = 0] = process.argv.slice(2, 5).map(Number);
const actionIds = (process.argv[5] ?? '').split(',').map(Number);

interface Request {
  readonly input_ids: readonly number[] | readonly (readonly number[])[];
  readonly sampling_params: { readonly max_new_tokens: number };
  readonly logprob_start_len?: number;
  readonly return_prompt_token_ids?: boolean;
}

const pages: Readonly<Record<string, unknown>> = {
  '/model_info': { model_path: 'instant', is_generation: true, has_image_understanding: true, weight_version: 'default' },
  '/server_info': { version: '0.5.19', page_size: 1, disable_radix_cache: false, context_length: 32768 },
  '/v1/models': { data: [{ id: 'instant', max_model_len: 32768 }] },
};

const server = createServer((request, response) => {
  const page = pages[request.url ?? ''];
  if (page !== undefined) return send(response, page);
  if (request.url !== '/generate') return response.writeHead(404).end();
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk)).on('end', () => void answer(Buffer.concat(chunks), response));
});
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  if (typeof address === 'object' && address) console.log(`http://127.0.0.1:${address.port}`);
});

async function answer(body: Buffer, response: ServerResponse): Promise<void> {
  // The pictures are megabytes of base64 that nobody here looks at.
  const text = body.toString('latin1');
  const images = text.indexOf(',"image_data":');
  const request = JSON.parse(images === -1 ? text : `${text.slice(0, images)}}`) as Request;
  if (delayMs > 0) await sleep(delayMs);
  const rows = typeof request.input_ids[0] === 'number' ? [request.input_ids] : request.input_ids;
  const replies = (rows as readonly (readonly number[])[]).map((ids) => reply(ids, request));
  send(response, rows === request.input_ids ? replies : replies[0]);
}

function reply(ids: readonly number[], request: Request): unknown {
  const images = ids.reduce((count, id) => count + (id === imagePadId ? 1 : 0), 0);
  const promptTokens = ids.length + images * (tokensPerImage - 1);
  const output = request.sampling_params.max_new_tokens >= actionIds.length ? actionIds : [];
  const scored = request.logprob_start_len ?? -1;
  const tail = scored >= 0 ? ids.slice(ids.length - (promptTokens - scored)) : [];
  return {
    output_ids: output,
    ...(request.return_prompt_token_ids && {
      prompt_token_ids: ids.flatMap((id) => (id === imagePadId ? Array(tokensPerImage).fill(id) : id)),
    }),
    meta_info: {
      finish_reason: output.length > 0 ? { type: 'stop' } : { type: 'length' },
      prompt_tokens: promptTokens,
      cached_tokens: promptTokens - 1,
      ...(images > 0 && { image_tokens: images * tokensPerImage }),
      weight_version: 'default',
      input_token_logprobs: tail.map((id, i) => [i === 0 ? null : -0.5, id, null]),
      output_token_logprobs: output.map((id) => [-0.1, id, null]),
      e2e_latency: 0,
    },
  };
}

function send(response: ServerResponse, value: unknown): void {
  response.setHeader('content-type', 'application/json').end(JSON.stringify(value));
}
