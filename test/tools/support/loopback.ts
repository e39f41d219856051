// A server on this machine that stands in for whatever the tools talk to.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

export interface Received {
  readonly method: string;
  readonly url: URL;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
}

export interface Loopback {
  /** http://127.0.0.1:PORT */
  readonly origin: string;
  readonly host: string;
  readonly received: readonly Received[];
}

export type Handler = (request: Received, response: ServerResponse, count: number) => void | Promise<void>;

/** Closed, with its connections, when the test ends. */
export async function startServer(handle: Handler): Promise<Loopback> {
  const received: Received[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const url = new URL(request.url ?? '/', 'http://127.0.0.1');
    const entry = { method: request.method ?? '', url, headers: request.headers, body: Buffer.concat(chunks) };
    received.push(entry);
    await handle(entry, response, received.length);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { origin: `http://${host}`, host, received };
}

export function json(response: ServerResponse, body: unknown, status = 200): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

export function html(response: ServerResponse, body: string): void {
  response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(body);
}
