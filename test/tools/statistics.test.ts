import { expect, it } from 'vitest';
import { createRedactor } from '../../src/tools/redaction.js';
import { createCounter } from '../../src/tools/statistics.js';
import { tools } from './support/create.js';
import { json, startServer } from './support/loopback.js';

it('counts calls, hits, outcomes and time per provider and step', () => {
  const counter = createCounter();
  const call = { provider: 'serper', step: 'search', outcome: 'answered', hit: false, latencyMs: 10 } as const;
  counter.add(call);
  counter.add({ ...call, latencyMs: 30 });
  counter.add({ ...call, hit: true, latencyMs: 999 });
  counter.add({ ...call, outcome: 'empty' });
  counter.add({ ...call, provider: 'page', step: 'fetch', outcome: 'failed', latencyMs: 5 });
  expect(counter.result(new Map(), {})).toEqual({
    steps: [
      {
        provider: 'serper',
        step: 'search',
        calls: 4,
        hits: 1,
        answered: 3,
        empty: 1,
        failed: 0,
        successRate: 0.75,
        meanLatencyMs: 50 / 3,
      },
      { provider: 'page', step: 'fetch', calls: 1, hits: 0, answered: 0, empty: 0, failed: 1, successRate: 0, meanLatencyMs: 5 },
    ],
    paid: [],
    successRate: 0.6,
  });
  expect(createCounter().result(new Map(), {}).successRate).toBeNull();
});

it('prices paid calls, and stops at the cap of a run', async () => {
  const server = await startServer((_, response) => json(response, { organic: [{ title: 'x' }] }));
  const textSearch = { provider: 'serper', key: 'k-0123456789abcdef', baseUrl: server.origin, results: 1 } as const;
  const made = await tools({ textSearch }, { maxPaidCalls: 2, prices: { serper: 0.001 } });
  for (const query of ['a', 'b']) await made.toolbox.textSearch!.search(query);
  await expect(made.toolbox.textSearch!.search('c')).rejects.toMatchObject({ name: 'ToolStopError' });
  expect(made.statistics().paid).toEqual([{ provider: 'serper', paidCalls: 2, cost: 0.002 }]);
  expect(server.received).toHaveLength(2);
});

it('takes keys out of texts in all their forms, and credentials out of addresses', () => {
  const redactor = createRedactor(['s3cret/key+1', 'abc']);
  expect(redactor.secrets(`a s3cret/key+1 b s3cret%2Fkey%2B1 c ${Buffer.from('s3cret/key+1').toString('base64')}`)).toBe(
    'a [redacted] b [redacted] c [redacted]',
  );
  // A short value is no key but a word.
  expect(redactor.secrets('abc')).toBe('abc');
  expect(redactor.all('https://a.example/x?q=1&api_key=ABC&x-amz-signature=ff#y and ?token=t')).toBe(
    'https://a.example/x?q=1&api_key=[redacted]&x-amz-signature=[redacted]#y and ?token=[redacted]',
  );
  // The addresses of results stay what they are.
  expect(redactor.secrets('https://a.example/watch?key=theirs')).toBe('https://a.example/watch?key=theirs');
});
