import { gzipSync } from 'node:zlib';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ToolError } from '../../../src/errors.js';
import { ToolStopError } from '../../../src/tools/errors.js';
import { createAllowList } from '../../../src/tools/http/addresses.js';
import { createHttpClient, type HttpClient } from '../../../src/tools/http/client.js';
import { createGuard, type Resolve } from '../../../src/tools/http/guard.js';
import { createBudget, createRateLimit } from '../../../src/tools/http/limits.js';
import type { HttpRequest } from '../../../src/tools/http/message.js';
import { createRedactor } from '../../../src/tools/redaction.js';
import { impatientClock } from '../support/clock.js';
import { startServer } from '../support/loopback.js';

const key = 'secret-key-1234';

function client({ allow = [], cap = null, resolve }: { allow?: readonly string[]; cap?: number | null; resolve?: Resolve } = {}) {
  const clock = impatientClock();
  const budget = createBudget(cap);
  const http: HttpClient = createHttpClient({
    guard: createGuard(createAllowList(allow), resolve),
    redactor: createRedactor([key]),
    clock,
    budget,
    rateLimits: new Map([['slow', createRateLimit(2, clock)]]),
  });
  onTestFinished(() => http.close());
  return { http, clock, budget };
}

const asking = (address: string, rest: Partial<HttpRequest> = {}): HttpRequest => ({
  provider: 'test',
  url: new URL(address),
  origin: 'configured',
  maxBytes: 2_000_000,
  timeoutMs: 2_000,
  ...rest,
});

describe('retries', () => {
  it('wait as long as Retry-After says, then succeed', async () => {
    const server = await startServer((_, response, count) => {
      if (count < 3) response.writeHead(429, { 'retry-after': '7' }).end('slow down');
      else response.end('here');
    });
    const { http, clock } = client();
    const reply = await http.send(asking(server.origin));
    expect(Buffer.from(reply.bytes).toString()).toBe('here');
    expect(clock.waits).toEqual([7_000, 7_000]);
  });

  it('grow and are capped where the server names no time', async () => {
    const server = await startServer((_, response) => void response.writeHead(503).end('down'));
    const { http, clock } = client();
    const reply = await http.send(asking(server.origin, { attempts: 7 }));
    expect(reply.status).toBe(503);
    // 3/4 of 500 · 2^n (jitter at its middle), at most 8 s.
    expect(clock.waits).toEqual([375, 750, 1_500, 3_000, 6_000, 6_000]);
  });

  it('end at once when the server asks for more patience than there is', async () => {
    const server = await startServer((_, response) => void response.writeHead(429, { 'retry-after': '86400' }).end());
    const { http, clock } = client();
    expect((await http.send(asking(server.origin))).status).toBe(429);
    expect(clock.waits).toEqual([]);
    expect(server.received).toHaveLength(1);
  });

  it('do not wait long for one page of several', async () => {
    const server = await startServer((_, response) => void response.writeHead(429, { 'retry-after': '30' }).end());
    const { http, clock } = client({ allow: [server.host] });
    expect((await http.send(asking(server.origin, { origin: 'outside' }))).status).toBe(429);
    expect(clock.waits).toEqual([]);
  });

  it('end with the cause when nobody answers', async () => {
    const { http, clock } = client();
    const call = http.send(asking(`http://127.0.0.1:1/search?api_key=${key}`));
    await expect(call).rejects.toThrow('test did not answer');
    await expect(call).rejects.toThrow('ECONNREFUSED');
    await expect(call).rejects.not.toThrow(key);
    expect(clock.waits).toHaveLength(3);
  });
});

describe('limits', () => {
  it('end a slow reply in time', async () => {
    const server = await startServer((_, response) => {
      response.writeHead(200, { 'content-type': 'text/plain' }).write('first');
    });
    const call = client().http.send(asking(server.origin, { timeoutMs: 100, attempts: 1 }));
    await expect(call).rejects.toThrow('expected a reply within 100 ms');
  });

  it('end an endless stream at the size limit', async () => {
    const server = await startServer((_, response) => {
      const timer = setInterval(() => response.write(Buffer.alloc(100_000)), 1);
      response.on('close', () => clearInterval(timer));
    });
    await expect(client().http.send(asking(server.origin))).rejects.toThrow('at most 2000000 bytes');
  });

  it('refuse 10 MB by their announced length', async () => {
    const server = await startServer((_, response) => void response.end(Buffer.alloc(10_000_000)));
    await expect(client().http.send(asking(server.origin))).rejects.toThrow('the reply is too large');
    expect(server.received).toHaveLength(1);
  });

  it('bound what a small compressed body becomes', async () => {
    const bomb = gzipSync(Buffer.alloc(50_000_000));
    expect(bomb.length).toBeLessThan(100_000);
    const server = await startServer((_, response) => void response.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb));
    await expect(client().http.send(asking(server.origin))).rejects.toThrow('the reply is too large');
  });

  it('read compressed bodies, and refuse encodings that nobody asked for', async () => {
    const server = await startServer((_, response, count) => {
      if (count === 1) response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync('packed'));
      else response.writeHead(200, { 'content-encoding': 'gzip, gzip' }).end('x');
    });
    const { http } = client();
    expect(Buffer.from((await http.send(asking(server.origin))).bytes).toString()).toBe('packed');
    await expect(http.send(asking(server.origin))).rejects.toThrow('unknown content encoding');
  });

  it('space calls to a provider', async () => {
    const server = await startServer((_, response) => void response.end());
    const { http, clock } = client();
    await Promise.all([1, 2, 3].map(() => http.send(asking(server.origin, { provider: 'slow' }))));
    expect(clock.waits.map((wait) => Math.round(wait / 100) * 100)).toEqual([500, 1_000]);
  });

  it('stop paid calls at the cap, and do not count what is not billed', async () => {
    const server = await startServer((_, response, count) => void response.writeHead(count === 1 ? 429 : 200).end());
    const { http, budget } = client({ cap: 2 });
    const paid = asking(server.origin, { paid: true });
    await http.send(paid);
    await http.send(paid);
    expect(budget.spent().get('test')).toBe(2);
    await expect(http.send(paid)).rejects.toThrow(ToolStopError);
    await expect(http.send(paid)).rejects.toThrow('the budget of paid calls is spent; expected at most 2 calls');
    expect(server.received).toHaveLength(3);
  });

  it('stop when the caller does', async () => {
    const server = await startServer(() => undefined);
    const abort = new AbortController();
    const call = client().http.send(asking(server.origin), abort.signal);
    setTimeout(() => abort.abort(new Error('enough')), 50);
    await expect(call).rejects.toThrow('enough');
  });
});

describe('addresses from outside', () => {
  it('may not lead to this machine, directly or by redirect', async () => {
    const inside = await startServer((_, response) => void response.end('internal'));
    const outside = await startServer(
      (_, response) => void response.writeHead(302, { location: `${inside.origin}/admin` }).end(),
    );
    const { http } = client({ allow: [outside.host] });
    await expect(http.send(asking(inside.origin, { origin: 'outside' }))).rejects.toThrow('address refused');
    await expect(http.send(asking(outside.origin, { origin: 'outside' }))).rejects.toThrow('address refused');
    expect(inside.received).toHaveLength(0);
  });

  it('are refused after their name is resolved', async () => {
    const inside = await startServer((_, response) => void response.end('internal'));
    const resolve: Resolve = (_name, _options, done) => done(null, [{ address: '127.0.0.1', family: 4 }]);
    const { http, clock } = client({ resolve });
    const port = new URL(inside.origin).port;
    const call = http.send(asking(`http://innocent.example:${port}/`, { origin: 'outside' }));
    await expect(call).rejects.toThrow('innocent.example at 127.0.0.1');
    await expect(call).rejects.toThrow(ToolError);
    expect(inside.received).toHaveLength(0);
    expect(clock.waits).toEqual([]);
  });

  it('may be redirected a few times', async () => {
    const server = await startServer(({ url }, response) => {
      if (url.pathname === '/end') response.end('here');
      else response.writeHead(301, { location: url.pathname === '/start' ? '/end' : '/loop' }).end();
    });
    const { http } = client({ allow: [server.host] });
    const reply = await http.send(asking(`${server.origin}/start`, { origin: 'outside' }));
    expect(reply.url).toBe(`${server.origin}/end`);
    await expect(http.send(asking(`${server.origin}/loop`, { origin: 'outside' }))).rejects.toThrow('too many redirects');
  });
});

it('does not carry a key along a redirect of a configured address', async () => {
  const other = await startServer((_, response) => void response.end());
  const server = await startServer(
    (_, response) => void response.writeHead(302, { location: `${other.origin}/?key=${key}` }).end(),
  );
  const call = client().http.send(asking(server.origin, { headers: { 'x-api-key': key } }));
  await expect(call).rejects.toThrow('a configured address redirects');
  await expect(call).rejects.not.toThrow(key);
  expect(other.received).toHaveLength(0);
});
