// Each provider against a server that speaks its reply format; shapes follow the providers' documentation.
import { describe, expect, it } from 'vitest';
import { ToolError, UsageError } from '../../../src/errors.js';
import { ToolStopError } from '../../../src/tools/errors.js';
import type { TextSearchOptions } from '../../../src/tools/options.js';
import { tools } from '../support/create.js';
import { type Handler, json, startServer } from '../support/loopback.js';

const key = 'k-0123456789abcdef';

const serpApiReply = {
  search_metadata: { id: '65f1', status: 'Success', json_endpoint: 'https://serpapi.com/searches/65f1.json' },
  search_parameters: { engine: 'google', q: 'Kalo Venn', num: '2' },
  organic_results: [
    {
      position: 1,
      title: 'Kalo Venn',
      link: 'https://example.org/kalo',
      snippet: 'Kalo Venn lives in\nOslo.',
      source: 'Example',
    },
    { position: 2, title: 'Venn', link: 'https://example.org/venn', snippet: 'A family.', source: 'Example' },
    { position: 3, title: 'Third', link: 'https://example.org/third', snippet: 'Beyond the limit.' },
  ],
};
const serperReply = {
  searchParameters: { q: 'Kalo Venn', type: 'search', engine: 'google' },
  organic: [
    { title: 'Kalo Venn', link: 'https://example.org/kalo', snippet: 'Kalo Venn lives in Oslo.', position: 1 },
    { title: 'No snippet', link: 'https://example.org/none', position: 2 },
  ],
  credits: 1,
};

async function searchAt(provider: 'serpapi' | 'serper' | 'retriever', handle: Handler, query = 'Kalo Venn') {
  const server = await startServer(handle);
  const options: TextSearchOptions =
    provider === 'retriever'
      ? { provider, url: `${server.origin}/retrieve`, results: 2 }
      : { provider, key, baseUrl: server.origin, results: 2 };
  const made = await tools({ textSearch: options });
  return { server, made, search: () => made.toolbox.textSearch!.search(query) };
}

describe('serpapi', () => {
  it('asks as documented and reads the organic results', async () => {
    const { server, search } = await searchAt('serpapi', (_, response) => json(response, serpApiReply), ' Kalo   Venn ');
    expect(await search()).toEqual([
      { title: 'Kalo Venn', text: 'Kalo Venn lives in Oslo.', url: 'https://example.org/kalo', source: 'Example' },
      { title: 'Venn', text: 'A family.', url: 'https://example.org/venn', source: 'Example' },
    ]);
    const [{ method, url } = { method: '', url: new URL('http://x') }] = server.received;
    expect(method).toBe('GET');
    expect(url.pathname).toBe('/search.json');
    expect(Object.fromEntries(url.searchParams)).toEqual({
      engine: 'google',
      q: 'Kalo Venn',
      num: '2',
      hl: 'en',
      gl: 'us',
      api_key: key,
    });
  });

  it('takes its words for no results as no results', async () => {
    const empty = { search_metadata: { status: 'Success' }, error: "Google hasn't returned any results for this query." };
    const { made, search } = await searchAt('serpapi', (_, response) => json(response, empty));
    expect(await search()).toEqual([]);
    expect(made.statistics().steps[0]).toMatchObject({ provider: 'serpapi', step: 'search', calls: 1, empty: 1, successRate: 0 });
  });

  it('lets results win over an error beside them', async () => {
    const both = { ...serpApiReply, error: "Google hasn't returned any results for this query." };
    const { search } = await searchAt('serpapi', (_, response) => json(response, both));
    expect(await search()).toHaveLength(2);
  });

  it('loses a field of another type, not the reply', async () => {
    const odd = { organic_results: [{ title: 'Kalo', snippet: null, link: 7, source: ['x'] }] };
    const { search } = await searchAt('serpapi', (_, response) => json(response, odd));
    expect(await search()).toEqual([{ title: 'Kalo' }]);
  });

  it('reports an error in a good reply', async () => {
    const { search } = await searchAt('serpapi', (_, response) => json(response, { error: `Unsupported location for ${key}.` }));
    await expect(search()).rejects.toThrow(ToolError);
    await expect(search()).rejects.toThrow('serpapi failed');
    await expect(search()).rejects.toThrow('Unsupported location for [redacted].');
  });

  it.each([
    [401, 'Invalid API key. Your API key should be here: https://serpapi.com/manage-api-key', 'serpapi refuses the key'],
    [429, 'Your account has run out of searches.', 'SerpApi serves this key no more'],
  ])('stops the run at status %i', async (status, error, message) => {
    const { search } = await searchAt('serpapi', (_, response) => json(response, { error }, status));
    await expect(search()).rejects.toThrow(ToolStopError);
    await expect(search()).rejects.toThrow(message);
    await expect(search()).rejects.toThrow(error);
  });

  it('retries a throttled call and counts it once', async () => {
    const { made, search } = await searchAt('serpapi', (_, response, count) => {
      if (count === 1) response.writeHead(429, { 'retry-after': '1' }).end('{"error": "Too many requests"}');
      else json(response, serpApiReply);
    });
    expect(await search()).toHaveLength(2);
    expect(made.statistics()).toMatchObject({
      steps: [{ calls: 1, answered: 1, successRate: 1 }],
      paid: [{ provider: 'serpapi', paidCalls: 1, cost: null }],
    });
  });

  it.each([
    ['no JSON', '<html>Bad gateway</html>', 'data that is no JSON'],
    ['another shape', '{"organic_results": {"title": 1}}', 'organic_results'],
  ])('reports %s', async (_, body, message) => {
    const { search } = await searchAt('serpapi', (_request, response) => void response.end(body));
    await expect(search()).rejects.toThrow('serpapi sent a malformed reply');
    await expect(search()).rejects.toThrow(message);
  });
});

describe('serper', () => {
  it('asks as documented and reads the organic results', async () => {
    const { server, search } = await searchAt('serper', (_, response) => json(response, serperReply));
    expect(await search()).toEqual([
      { title: 'Kalo Venn', text: 'Kalo Venn lives in Oslo.', url: 'https://example.org/kalo' },
      { title: 'No snippet', url: 'https://example.org/none' },
    ]);
    const [request] = server.received;
    expect(request).toMatchObject({ method: 'POST', headers: { 'x-api-key': key, 'content-type': 'application/json' } });
    expect(JSON.parse(request!.body.toString())).toEqual({ q: 'Kalo Venn', num: 2, hl: 'en', gl: 'us' });
  });

  it('knows an empty list', async () => {
    const { search } = await searchAt('serper', (_, response) => json(response, { ...serperReply, organic: [] }));
    expect(await search()).toEqual([]);
  });

  it.each([
    [400, 'Not enough credits', 'no credits left'],
    [403, 'Unauthorized.', 'serper refuses the key'],
  ])('stops the run at %i %s', async (status, message, told) => {
    const { search } = await searchAt('serper', (_, response) => json(response, { message, statusCode: status }, status));
    await expect(search()).rejects.toThrow(ToolStopError);
    await expect(search()).rejects.toThrow(told);
  });

  it('fails, but does not stop the run, when the server is broken', async () => {
    const { server, search } = await searchAt('serper', (_, response) => json(response, { message: 'Internal' }, 500));
    await expect(search()).rejects.toThrow('serper failed');
    expect(server.received).toHaveLength(4);
  });
});

describe('retriever', () => {
  const contents = '"Kalo Venn"\nKalo Venn lives in Oslo.\nSince 2001.';

  it.each([
    ['with scores', { result: [[{ document: { id: '7', contents }, score: 11.2 }]] }],
    ['without scores', { result: [[{ id: '7', contents }]] }],
  ])('reads the reply shape %s', async (_, reply) => {
    const { server, search } = await searchAt('retriever', (_request, response) => json(response, reply));
    expect(await search()).toEqual([{ title: 'Kalo Venn', text: 'Kalo Venn lives in Oslo. Since 2001.' }]);
    expect(JSON.parse(server.received[0]!.body.toString())).toEqual({ queries: ['Kalo Venn'], topk: 2, return_scores: true });
    expect(server.received[0]!.url.pathname).toBe('/retrieve');
  });

  it('knows an empty list, and refuses a reply without the query’s own', async () => {
    const { search } = await searchAt('retriever', (_, response, count) => json(response, { result: count === 1 ? [[]] : [] }));
    expect(await search()).toEqual([]);
    await expect(search()).rejects.toThrow('the retriever answered another number of queries');
  });

  it('passes on what the server says is wrong', async () => {
    const detail = [{ loc: ['body', 'topk'], msg: 'value is not a valid integer' }];
    const { search } = await searchAt('retriever', (_, response) => json(response, { detail }, 422));
    await expect(search()).rejects.toThrow('status 422: {"detail"');
  });
});

describe('before the run', () => {
  it.each([
    [{ provider: 'serpapi', results: 5 }, 'serpapi needs a key; expected one in SERPAPI_API_KEY'],
    [{ provider: 'serper', key: '', results: 5 }, 'serper needs a key'],
    [{ provider: 'retriever', url: 'localhost:8000', results: 5 }, 'retriever URL: not an address'],
    [{ provider: 'local', corpus: '/nowhere/corpus.jsonl', results: 5 }, 'cannot read the corpus'],
  ] as [TextSearchOptions, string][])('%j is refused', async (textSearch, message) => {
    await expect(tools({ textSearch })).rejects.toThrow(UsageError);
    await expect(tools({ textSearch })).rejects.toThrow(message);
  });
});
