// A server for the harness benchmark that speaks enough of SGLang's protocol and computes nothing: it answers at once, or after a
// fixed time per call. It runs as a process of its own, so that its work is not the harness's.
//   tsx instant-server.ts DELAY_MS IMAGE_PAD_ID TOKENS_PER_IMAGE ACTION_IDS(comma-separated)
import { createServer, type ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

const [delayMs = 0, imagePadId = 0, tokensPerImage = 0] = process.argv.slice(2, 5).map(Number);
const actionIds = (process.argv[5] ?? '').split(',').map(Number);

const pages: Readonly<Record<string, unknown>> = {
  '/model_info': { model_path: 'instant', is_generation: true, has_image_understanding: true, weight_version: 'default' },
  '/server_info': { version: '0.5.19', page_size: 1, disable_radix_cache: false, context_length: 32768 },
  '/v1/models': { data: [{ id: 'instant', max_model_len: 32768 }] },
};

const server = createServer((request, response) => {
  const page = pages[request.url ?? ''];
  if (page !== undefined) return send(response, page);
  if (request.url !== '/generate') return response.writeHead(404).end();
  const arrived = performance.now();
  const chunks: Buffer[] = [];
  request
    .on('data', (chunk: Buffer) => chunks.push(chunk))
    .on('end', () => void answer(Buffer.concat(chunks), response, arrived));
});
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  if (typeof address === 'object' && address) console.log(`http://127.0.0.1:${address.port}`);
});

/** The call takes `delayMs` from its first byte here to its answer, reading included (timers fire late, so whole milliseconds less). */
async function answer(body: Buffer, response: ServerResponse, arrived: number): Promise<void> {
  const request = readRequest(body);
  const rest = Math.floor(delayMs - (performance.now() - arrived));
  if (rest > 0) await sleep(rest);
  const latency = (performance.now() - arrived) / 1000;
  const replies = request.rows.map((ids) => reply(ids, request, latency));
  send(response, request.batch ? replies : replies[0]);
}

interface Request {
  /** The ids of each row as the text between its brackets. */
  readonly rows: readonly string[];
  readonly batch: boolean;
  readonly newTokens: number;
  /** logprob_start_len, -1 where none is asked for. */
  readonly scoredFrom: number;
  readonly echo: boolean;
}

/** Reads what a reply depends on and passes over the rest: a parser would spend more on ids and pictures than the client that is measured. */
function readRequest(body: Buffer): Request {
  const idsAt = body.indexOf('"input_ids":[');
  const fields = body.toString('latin1', 0, idsAt);
  const imagesAt = body.indexOf(',"image_data":', idsAt);
  const ids = body.toString('latin1', idsAt + '"input_ids":['.length, imagesAt === -1 ? body.length : imagesAt);
  const batch = ids.startsWith('[');
  const inner = ids.slice(0, ids.lastIndexOf(']'));
  return {
    rows: batch ? inner.slice(1, -1).split('],[') : [inner],
    batch,
    newTokens: Number(/"max_new_tokens":(\d+)/.exec(fields)?.[1]),
    scoredFrom: Number(/"logprob_start_len":(\d+)/.exec(fields)?.[1] ?? -1),
    echo: fields.includes('"return_prompt_token_ids":true'),
  };
}

function reply(row: string, request: Request, latency: number): unknown {
  const images = row.split(`,${imagePadId},`).length - 1; // a picture's id has neighbours of its own
  const promptTokens = commas(row) + 1 + images * (tokensPerImage - 1);
  const output = request.newTokens >= actionIds.length ? actionIds : [];
  const tail = request.scoredFrom >= 0 ? lastIds(row, promptTokens - request.scoredFrom) : [];
  return {
    output_ids: output,
    ...(request.echo && {
      prompt_token_ids: row
        .split(',')
        .map(Number)
        .flatMap((id) => (id === imagePadId ? Array(tokensPerImage).fill(id) : id)),
    }),
    meta_info: {
      finish_reason: output.length > 0 ? { type: 'stop' } : { type: 'length' },
      prompt_tokens: promptTokens,
      cached_tokens: promptTokens - 1,
      ...(images > 0 && { image_tokens: images * tokensPerImage }),
      weight_version: 'default',
      input_token_logprobs: tail.map((id, i) => [i === 0 ? null : -0.5, id, null]),
      output_token_logprobs: output.map((id) => [-0.1, id, null]),
      e2e_latency: latency,
    },
  };
}

function commas(text: string): number {
  let found = 0;
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) === 44) found++;
  return found;
}

function lastIds(row: string, n: number): number[] {
  let from = row.length;
  for (let i = 0; i < n && from !== -1; i++) from = row.lastIndexOf(',', from - 1);
  return row
    .slice(from + 1)
    .split(',')
    .map(Number);
}

function send(response: ServerResponse, value: unknown): void {
  response.setHeader('content-type', 'application/json').end(JSON.stringify(value));
}
