// A hub on this machine: serves files of one data set repository as the real one does, with faults on demand.
import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export const commit = '0123456789abcdef0123456789abcdef01234567';

export interface Fault {
  /** Cut the connection after this share of the bytes asked for. */
  readonly dropAt?: number;
  /** Send this share and then nothing more. */
  readonly stallAt?: number;
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent in place of the file. */
  readonly instead?: Uint8Array;
}

export interface Received {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
}

export interface LoopbackHub {
  readonly endpoint: string;
  /** The host that large files are redirected to. */
  readonly content: string;
  readonly received: Received[];
  /** Faults are used up, one per GET of a file's content. */
  readonly faults: Fault[];
  readonly files: Map<string, Uint8Array>;
  close(): Promise<void>;
}

/** Files under `small` are sent by the hub itself with Git's hash; all others are LFS objects, redirected to the content host. */
export async function startHub(
  files: Readonly<Record<string, Uint8Array>>,
  repository: string,
  treePage = 1000,
): Promise<LoopbackHub> {
  const received: Received[] = [];
  const faults: Fault[] = [];
  const stored = new Map(Object.entries(files));
  const prefix = `/datasets/${repository}/resolve/${commit}/`;

  const content = createServer((request, response) => {
    note(request);
    const path = new URL(request.url ?? '', 'http://content').pathname;
    const name = path.startsWith('/media/') ? path.split('/').slice(5).join('/') : path.slice('/objects/'.length);
    sendFile(request, response, stored.get(decodeURIComponent(name)), '"content-etag"');
  });
  const hub = createServer((request, response) => {
    note(request);
    const path = request.url ?? '';
    if (path.startsWith(`/api/datasets/${repository}/revision/`)) return json(response, { sha: commit });
    if (path.startsWith(`/api/datasets/${repository}/tree/`)) return tree(path, response);
    if (!path.startsWith(prefix)) return void response.writeHead(404, { 'x-error-code': 'RepoNotFound' }).end();
    const name = decodeURIComponent(path.slice(prefix.length));
    const bytes = stored.get(name);
    const status = faults[0]?.status;
    if (request.method === 'HEAD' && status !== undefined && status !== 416) {
      const fault = faults.shift();
      return void response.writeHead(status, fault?.headers).end();
    }
    if (bytes === undefined) return void response.writeHead(404, { 'x-error-code': 'EntryNotFound' }).end();
    if (name.startsWith('small')) return sendFile(request, response, bytes, `"${gitHash(bytes)}"`);
    response.writeHead(302, {
      location: `${origin(content)}/objects/${encodeURIComponent(name)}?signature=1`,
      'x-repo-commit': commit,
      'x-linked-etag': `"${sha256(bytes)}"`,
      'x-linked-size': String(bytes.length),
    });
    response.end();
  });
  await Promise.all([listen(hub), listen(content)]);
  return {
    endpoint: origin(hub),
    content: origin(content),
    received,
    faults,
    files: stored,
    close: async () => {
      for (const server of [hub, content]) {
        server.closeAllConnections();
        await new Promise((resolve) => server.close(resolve));
      }
    },
  };

  function note(request: IncomingMessage): void {
    received.push({ method: request.method ?? '', path: request.url ?? '', headers: request.headers });
  }

  function sendFile(request: IncomingMessage, response: ServerResponse, bytes: Uint8Array | undefined, etag: string): void {
    if (bytes === undefined) return void response.writeHead(404).end();
    if (request.method === 'HEAD')
      return void response.writeHead(200, { etag, 'content-length': bytes.length, 'x-repo-commit': commit }).end();
    const fault = faults.shift() ?? {};
    if (fault.status !== undefined) return void response.writeHead(fault.status, fault.headers).end();
    const range = /^bytes=(\d+)-$/.exec(request.headers.range ?? '');
    const usable = range !== null && (request.headers['if-range'] ?? etag) === etag;
    const from = usable ? Number(range[1]) : 0;
    const whole = fault.instead ?? bytes;
    const body = whole.subarray(from);
    response.writeHead(usable ? 206 : 200, {
      etag,
      'content-length': body.length,
      ...fault.headers,
      ...(usable && { 'content-range': `bytes ${from}-${whole.length - 1}/${whole.length}` }),
    });
    const share = fault.dropAt ?? fault.stallAt;
    if (share === undefined) return void response.end(body);
    response.write(body.subarray(0, Math.floor(body.length * share)), () => {
      // What was sent has time to be read: a client loses what still waits in its buffers.
      if (fault.dropAt !== undefined) setTimeout(() => response.destroy(), 200);
    });
  }

  /** One page of the list of files; the next page is named on another host, as mirrors do. */
  function tree(path: string, response: ServerResponse): void {
    const start = Number(new URL(path, 'http://hub').searchParams.get('cursor') ?? 0);
    const names = [...stored.keys()];
    const entries = names.slice(start, start + treePage).map((name) => {
      const bytes = stored.get(name) ?? new Uint8Array();
      const lfs = name.startsWith('small') ? {} : { lfs: { oid: sha256(bytes), size: bytes.length } };
      return { type: 'file', path: name, oid: gitHash(bytes), size: bytes.length, ...lfs };
    });
    const next = `https://elsewhere.invalid/api/datasets/${repository}/tree/${commit}?recursive=true&cursor=${start + treePage}`;
    if (start + treePage < names.length) response.setHeader('link', `<${next}>; rel="next"`);
    json(response, [{ type: 'directory', path: 'data', oid: 'x' }, ...entries]);
  }
}

function json(response: ServerResponse, value: unknown): void {
  response.setHeader('content-type', 'application/json').end(JSON.stringify(value));
}

function listen(server: Server): Promise<void> {
  return new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
}

function origin(server: Server): string {
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

export function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

export function gitHash(bytes: Uint8Array): string {
  return createHash('sha1').update(`blob ${bytes.length}\0`).update(bytes).digest('hex');
}
