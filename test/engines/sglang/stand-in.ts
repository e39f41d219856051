// A stand-in for an SGLang server over HTTP, faithful to its protocol and to its traps: the requests that kill, hang or
// confuse the real one do the same here. The numbers come from any Engine, the trouble on demand from a FaultPlan.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Engine, EngineInfo } from '../../../src/types.js';
import { type Fault, FaultPlan } from './stand-in-faults.js';
import { Generator } from './stand-in-generate.js';

export interface StandInOptions {
  readonly imagePadId: number;
  readonly version?: string;
  readonly pageSize?: number;
  readonly apiKey?: string;
  readonly adminKey?: string;
  /** As --enable-metrics: per-phase times in the replies. */
  readonly metrics?: boolean;
  /** Overrides of /server_info and /model_info. */
  readonly serverInfo?: Readonly<Record<string, unknown>>;
  readonly modelInfo?: Readonly<Record<string, unknown>>;
  /** Added to every /generate request, for measurements. */
  readonly delayMs?: number;
  /** Names of routes as before 0.5.6. */
  readonly oldNames?: boolean;
  /** Told of the folder that /update_weights_from_disk names. */
  readonly onUpdate?: (folder: string) => void;
}

export interface StandIn {
  readonly url: string;
  readonly faults: FaultPlan;
  /** Every request so far: path and parsed body (pictures shortened). */
  readonly requests: readonly {
    readonly path: string;
    readonly body: Record<string, unknown>;
    readonly headers: IncomingMessage['headers'];
  }[];
  fault(fault: Fault): void;
  /** As a crash: open connections break, new ones are refused. */
  die(): Promise<void>;
  close(): Promise<void>;
}

const ADMIN = new Set([
  '/flush_cache',
  '/abort_request',
  '/pause_generation',
  '/continue_generation',
  '/update_weights_from_disk',
]);

export async function startStandIn(engine: Engine, options: StandInOptions, port = 0): Promise<StandIn> {
  const info = await engine.describe();
  const faults = new FaultPlan();
  const sockets = new Set<Socket>();
  const requests: { path: string; body: Record<string, unknown>; headers: IncomingMessage['headers'] }[] = [];
  const generator = new Generator(engine, info, options);
  const server = createServer((request, response) => {
    handle(request, response).catch((error: unknown) => {
      if (!response.headersSent) internalError(response);
      else response.destroy(error instanceof Error ? error : undefined);
    });
  });
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });

  const die = async (): Promise<void> => {
    server.close();
    for (const socket of sockets) socket.destroy();
  };

  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const path = (request.url ?? '').split('?')[0] ?? '';
    const source = await bodyOf(request);
    const body = parse(source);
    requests.push({ path, body: shortened(body ?? {}), headers: request.headers });
    const key = ADMIN.has(path) ? (options.adminKey ?? options.apiKey) : options.apiKey;
    if (key !== undefined && !path.startsWith('/health') && request.headers.authorization !== `Bearer ${key}`) {
      return json(response, 401, { error: 'Unauthorized' });
    }
    const fault = faults.take(path);
    if (fault?.kind === 'hang') return;
    if (fault?.kind === 'die') return die();
    if (fault?.kind === 'drop') return void request.socket.destroy();
    if (fault?.kind === 'status') {
      response.writeHead(fault.status, { 'content-type': 'text/plain', ...fault.headers });
      return void response.end(fault.body ?? '', () => fault.close && request.socket.destroy());
    }
    if (body === null)
      return json(response, 400, schemaError("{'type': 'json_invalid', 'loc': ('body', 1), 'msg': 'JSON decode error'}"));
    if (path === '/generate') {
      const trajectory = decodeURIComponent(String(request.headers['x-smg-routing-key'] ?? body.rid ?? ''));
      if (options.delayMs) await new Promise((resolve) => setTimeout(resolve, options.delayMs));
      const outcome = await generator.generate(body, trajectory, fault, response);
      if (outcome === 'die') return die();
      if (outcome === 'internal-error') return internalError(response);
      return;
    }
    route(path, body, response, generator, info, options);
  };

  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    faults,
    requests,
    fault: (fault) => faults.add(fault),
    die,
    close: die,
  };
}

function route(
  path: string,
  body: Record<string, unknown>,
  response: ServerResponse,
  generator: Generator,
  info: EngineInfo,
  options: StandInOptions,
): void {
  const prefix = options.oldNames ? '/get_' : '/';
  switch (path) {
    case `${prefix}model_info`:
      json(response, 200, {
        model_path: info.model,
        is_generation: true,
        weight_version: generator.weights,
        has_image_understanding: true,
        ...options.modelInfo,
      });
      break;
    case `${prefix}server_info`:
      json(response, 200, {
        version: options.version ?? '0.5.19',
        page_size: options.pageSize ?? 1,
        disable_radix_cache: false,
        allow_auto_truncate: false,
        skip_tokenizer_init: false,
        context_length: null,
        max_total_num_tokens: 60000,
        max_req_input_len: info.contextLength - 6,
        api_key: options.apiKey ?? null,
        ...options.serverInfo,
      });
      break;
    case '/v1/models':
      json(response, 200, {
        object: 'list',
        data: [{ id: info.model, object: 'model', max_model_len: info.contextLength }],
      });
      break;
    case '/get_load':
      json(response, 200, [{ dp_rank: 0, num_reqs: generator.running }]);
      break;
    case '/v1/loads':
      if (options.oldNames) internalError(response);
      else json(response, 200, { loads: [{ dp_rank: 0, num_running_reqs: generator.running, num_waiting_reqs: 0 }] });
      break;
    case '/health':
      response.writeHead(200).end();
      break;
    case '/abort_request':
      generator.abort(String(body.rid ?? ''), body.abort_all === true);
      response.writeHead(200).end();
      break;
    case '/flush_cache': {
      const flushed = generator.flush();
      response.writeHead(flushed ? 200 : 400).end(flushed ? 'Cache flushed.\n' : 'Flush cache failed.\n');
      break;
    }
    case '/pause_generation':
      generator.abort('', body.mode === 'abort');
      json(response, 200, { status: 'paused' });
      break;
    case '/continue_generation':
      json(response, 200, { status: 'ok' });
      break;
    case '/update_weights_from_disk':
      options.onUpdate?.(String(body.model_path));
      generator.weights = String(body.weight_version ?? generator.weights);
      generator.flush();
      json(response, 200, { success: true, message: 'Succeeded to update model weights.', num_paused_requests: 0 });
      break;
    default:
      json(response, 404, { detail: 'Not Found' });
      break;
  }
}

/** As the real one: plain text, and the connection is closed although nothing said so. */
function internalError(response: ServerResponse): void {
  const { socket } = response;
  response.writeHead(500, { 'content-type': 'text/plain; charset=utf-8', connection: 'keep-alive' });
  response.end('Internal Server Error', () => socket?.destroy());
}

export function json(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}

export function schemaError(message: string): unknown {
  return { object: 'error', message: `1 validation error:\n  ${message}`, type: 'Bad Request', param: null, code: 400 };
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece as Buffer);
  return Buffer.concat(pieces).toString('utf8');
}

function parse(source: string): Record<string, unknown> | null {
  if (source === '') return {};
  try {
    return JSON.parse(source) as Record<string, unknown>;
  } catch {
    return null;
  }
}

function shortened(body: Record<string, unknown>): Record<string, unknown> {
  const short = (value: unknown): unknown =>
    typeof value === 'string' ? value.slice(0, 40) : Array.isArray(value) ? value.map(short) : value;
  return 'image_data' in body ? { ...body, image_data: short(body.image_data) } : body;
}
