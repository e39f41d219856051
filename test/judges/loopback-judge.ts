// A chat server on this machine that replies as it is told to.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

export type Behaviour =
  | { readonly kind: 'say'; readonly text: string | null }
  | { readonly kind: 'status'; readonly status: number; readonly headers?: Readonly<Record<string, string>> }
  | { readonly kind: 'slow'; readonly ms: number; readonly text: string }
  | { readonly kind: 'raw'; readonly body: string }
  | { readonly kind: 'hang up' };

export interface ChatRequest {
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: {
    readonly model: string;
    readonly temperature?: number;
    readonly messages: readonly { readonly role: string; readonly content: string | readonly Record<string, unknown>[] }[];
  };
}

export interface LoopbackJudge {
  readonly url: string;
  readonly requests: ChatRequest[];
  /** Most requests that were open at the same time. */
  readonly mostAtOnce: () => number;
  close(): Promise<void>;
}

/** `behave` sees each request and its number from 0. */
export async function startJudge(behave: (request: ChatRequest, number: number) => Behaviour): Promise<LoopbackJudge> {
  const requests: ChatRequest[] = [];
  let open = 0;
  let most = 0;
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const received: ChatRequest = {
      headers: request.headers,
      body: JSON.parse(Buffer.concat(chunks).toString()) as ChatRequest['body'],
    };
    requests.push(received);
    most = Math.max(most, ++open);
    const behaviour =
      request.url === '/v1/chat/completions' ? behave(received, requests.length - 1) : ({ kind: 'status', status: 404 } as const);
    await sleep(behaviour.kind === 'slow' ? behaviour.ms : 2);
    open -= 1;
    if (behaviour.kind === 'hang up') return void response.destroy();
    if (behaviour.kind === 'status')
      return void response.writeHead(behaviour.status, behaviour.headers).end('{"error": "told to"}');
    if (behaviour.kind === 'raw') return void response.end(behaviour.body);
    response.setHeader('content-type', 'application/json');
    response.end(
      JSON.stringify({ choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: behaviour.text } }] }),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    requests,
    mostAtOnce: () => most,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
