import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ToolError, UsageError } from '../../../src/errors.js';
import { ToolStopError } from '../../../src/tools/errors.js';
import type { RecordingOptions, TextSearchOptions } from '../../../src/tools/options.js';
import { createSharedCalls } from '../../../src/tools/recording/shared-calls.js';
import { storeStatistics } from '../../../src/tools/recording/snapshot.js';
import type { SearchResult, TextSearch } from '../../../src/types.js';
import { impatientClock } from '../support/clock.js';
import { tools } from '../support/create.js';
import { html, json, startServer } from '../support/loopback.js';
import { picture, temporaryFolder } from '../support/pictures.js';

/** Answers with what stands in `answers`, in order; a string is a failure. */
function scripted(...answers: (readonly SearchResult[] | string)[]): TextSearch & { asked: string[] } {
  const asked: string[] = [];
  return {
    name: 'scripted',
    asked,
    async search(query) {
      const answer = answers[asked.length];
      asked.push(query);
      if (answer === undefined) throw new Error('asked too often');
      if (typeof answer === 'string') throw new ToolError(answer);
      return answer;
    },
  };
}

async function searching(search: TextSearch, recording: RecordingOptions, version = '1') {
  const textSearch: TextSearchOptions = { provider: 'given', search, version, results: 2 };
  const made = await tools({ textSearch, recording });
  return { ask: (query: string) => made.toolbox.textSearch!.search(query), statistics: made.statistics };
}

const oslo = [{ title: 'Kalo Venn', text: 'Oslo \ud800', url: 'https://example.org/?key=theirs' }];

describe('recording', () => {
  it('asks once and answers from the store from then on, across runs', async () => {
    const store = await temporaryFolder();
    const search = scripted(oslo);
    const first = await searching(search, { mode: 'record', store });
    expect(await first.ask('Kalo Venn city')).toEqual(oslo);
    expect(await first.ask('  Kalo  Venn\ncity ')).toEqual(oslo);
    expect(search.asked).toEqual(['Kalo Venn city']);
    const second = await searching(scripted(), { mode: 'record', store });
    expect(await second.ask('Kalo Venn city')).toEqual(oslo);
    expect(first.statistics().steps[0]).toMatchObject({ calls: 2, hits: 1, answered: 2 });
    expect(second.statistics().steps[0]).toMatchObject({ calls: 1, hits: 1, meanLatencyMs: null });
  });

  it('never serves an empty or failed response as an answer later', async () => {
    const store = await temporaryFolder();
    const search = scripted([], 'down', oslo);
    const { ask, statistics } = await searching(search, { mode: 'record', store });
    expect(await ask('q')).toEqual([]);
    await expect(ask('q')).rejects.toThrow('down');
    expect(await ask('q')).toEqual(oslo);
    expect(search.asked).toHaveLength(3);
    expect(statistics().steps[0]).toMatchObject({ calls: 3, hits: 0, answered: 1, empty: 1, failed: 1 });
    expect(await storeStatistics(store)).toMatchObject({
      providers: [{ provider: 'scripted', answered: 1, empty: 1, failed: 1 }],
    });
    // An answer outlasts later failures.
    const later = await searching(scripted(), { mode: 'replay', store });
    expect(await later.ask('q')).toEqual(oslo);
  });

  it('tells apart versions and parameters', async () => {
    const store = await temporaryFolder();
    await (await searching(scripted(oslo), { mode: 'record', store })).ask('q');
    const other = scripted([{ text: 'new corpus' }]);
    expect(await (await searching(other, { mode: 'record', store }, '2')).ask('q')).toEqual([{ text: 'new corpus' }]);
  });
});

describe('replay', () => {
  it('asks nothing, and shows what was seen: answers, empty lists and failures', async () => {
    const store = await temporaryFolder();
    const recorded = await searching(scripted(oslo, [], 'down'), { mode: 'record', store });
    await recorded.ask('a');
    await recorded.ask('b');
    await expect(recorded.ask('c')).rejects.toThrow(ToolError);
    const { ask, statistics } = await searching(scripted(), { mode: 'replay', store });
    expect(await ask('a')).toEqual(oslo);
    expect(await ask('b')).toEqual([]);
    await expect(ask('c')).rejects.toThrow('down');
    expect(statistics().steps[0]).toMatchObject({ calls: 3, hits: 3, answered: 1, empty: 1, failed: 1 });
  });

  it('answers a miss with a tool error, strictly by stopping the run, and names what is missing', async () => {
    const store = await temporaryFolder();
    await (await searching(scripted(oslo), { mode: 'record', store })).ask('a');
    const replay = (await searching(scripted(), { mode: 'replay', store })).ask('changed');
    await expect(replay).rejects.toThrow(ToolError);
    await expect(replay).rejects.toThrow(
      'not recorded; expected a recording of text-search by scripted (version 1), found none for "changed"',
    );
    const strict = (await searching(scripted(), { mode: 'strict', store })).ask('changed');
    await expect(strict).rejects.toThrow(ToolStopError);
    await expect(strict).rejects.toThrow(/tool store, key [0-9a-f]{64}/);
    await expect(strict).rejects.not.toThrow(ToolError);
  });

  it('takes as long as the recording did, if asked to', async () => {
    const store = await temporaryFolder();
    const clock = impatientClock();
    const slow: TextSearch = { name: 'slow', search: () => new Promise((resolve) => setTimeout(() => resolve(oslo), 60)) };
    const textSearch: TextSearchOptions = { provider: 'given', search: slow, version: '1', results: 2 };
    await (await tools({ textSearch, recording: { mode: 'record', store } })).toolbox.textSearch!.search('q');
    for (const replayLatency of [false, true]) {
      const made = await tools({ textSearch, clock, recording: { mode: 'replay', store, replayLatency } });
      await made.toolbox.textSearch!.search('q');
    }
    expect(clock.waits).toHaveLength(1);
    expect(clock.waits[0]).toBeGreaterThanOrEqual(55);
  });

  it('needs no key, no host and no network, but a store', async () => {
    const store = await temporaryFolder();
    const textSearch: TextSearchOptions = { provider: 'serper', results: 2 };
    await expect(tools({ textSearch, recording: { mode: 'replay', store } })).rejects.toThrow(UsageError);
    await (await searching(scripted(oslo), { mode: 'record', store })).ask('q');
    const made = await tools({ textSearch, imageSearch: { provider: 'lens', results: 2 }, recording: { mode: 'replay', store } });
    await expect(made.toolbox.textSearch!.search('q')).rejects.toThrow('not recorded');
    await expect(made.toolbox.imageSearch!.search(await picture('red'))).rejects.toThrow('not recorded');
  });
});

describe('a recorded search with pages and thumbnails', () => {
  const key = 'k-0123456789abcdef';
  const countTokens = (text: string): number => text.split(' ').length;

  it('is replayed with its servers gone, and holds no key', async () => {
    const store = await temporaryFolder();
    const red = await picture('red');
    const server = await startServer(({ url }, response) => {
      const page = `http://${server.host}/page?api_key=${key}`;
      if (url.pathname === '/search.json' && url.searchParams.get('engine') === 'google') {
        return json(response, {
          search_parameters: { api_key: key },
          organic_results: [
            { title: `About ${key}`, link: page, snippet: 's' },
            { title: 'Gone', link: `http://${server.host}/gone`, snippet: 'the snippet' },
          ],
        });
      }
      if (url.pathname === '/search.json')
        return json(response, {
          visual_matches: [
            { title: 'Lost', thumbnail: `http://${server.host}/gone` },
            { title: 'Red', thumbnail: `http://${server.host}/red.png` },
          ],
        });
      if (url.pathname === '/page') return html(response, `<p>The page says that ${key} is here, and a few more words.</p>`);
      if (url.pathname === '/red.png') return void response.end(red.bytes);
      response.writeHead(url.pathname === '/gone' ? 404 : 200).end(`no ${key}`);
    });
    const options = (recording: RecordingOptions) =>
      tools(
        {
          textSearch: { provider: 'serpapi', key, baseUrl: server.origin, results: 2 },
          imageSearch: {
            provider: 'lens',
            key,
            baseUrl: server.origin,
            imageHost: `${server.origin}/up/{name}?sig=${key}`,
            results: 2,
          },
          pages: { mode: 'text', tokens: 50, countTokens, tokenizer: 'words' },
          recording,
        },
        { allow: [server.host] },
      );
    const both = async (recording: RecordingOptions) => {
      const { toolbox } = await options(recording);
      return [await toolbox.textSearch!.search('q'), await toolbox.imageSearch!.search(await picture('blue'))];
    };
    const recorded = await both({ mode: 'record', store });
    const calls = server.received.length;
    const replayed = await both({ mode: 'strict', store });
    expect(replayed).toEqual(recorded);
    expect(server.received).toHaveLength(calls);
    expect(recorded[0]![0]).toMatchObject({ title: 'About [redacted]', text: expect.stringContaining('[redacted] is here') });
    expect(recorded[0]![1]).toMatchObject({ text: 'the snippet', fallback: expect.stringContaining('404') });
    expect(recorded[1]!.map(({ thumbnail }) => thumbnail?.sha256)).toEqual([undefined, red.sha256]);
    for (const name of await readdir(store, { recursive: true, withFileTypes: true })) {
      if (name.isFile()) expect(await readFile(join(name.parentPath, name.name), 'latin1')).not.toContain(key);
    }
  });

  it('does not turn a page that was not recorded into a snippet', async () => {
    const store = await temporaryFolder();
    const found: TextSearch = { name: 'given', search: async () => [{ text: 'snippet', url: 'http://203.0.113.1/' }] };
    const textSearch: TextSearchOptions = { provider: 'given', search: found, version: '1', results: 1 };
    await (await tools({ textSearch, recording: { mode: 'record', store } })).toolbox.textSearch!.search('q');
    const pages = { mode: 'text', tokens: 50, countTokens, tokenizer: 'words' } as const;
    const made = await tools({ textSearch, pages, recording: { mode: 'replay', store } });
    await expect(made.toolbox.textSearch!.search('q')).rejects.toThrow('a recording of page');
  });
});

describe('equal calls at once', () => {
  it('are one call', async () => {
    const search = scripted(oslo);
    const { ask, statistics } = await searching(search, { mode: 'live' });
    expect(await Promise.all([ask('q'), ask('q'), ask(' q ')])).toEqual([oslo, oslo, oslo]);
    expect(search.asked).toHaveLength(1);
    expect(statistics().steps[0]).toMatchObject({ calls: 3, hits: 2 });
  });

  it('go on while somebody waits, and are aborted when nobody does', async () => {
    const calls = createSharedCalls<string>();
    let aborted = false;
    const call = (signal: AbortSignal) =>
      new Promise<string>((resolve) => {
        signal.addEventListener('abort', () => {
          aborted = true;
        });
        setTimeout(() => resolve('answer'), 50);
      });
    const [first, second] = [new AbortController(), new AbortController()];
    const left = calls.run('k', call, first.signal);
    const stayed = calls.run('k', call, second.signal);
    first.abort(new Error('first left'));
    await expect(left).rejects.toThrow('first left');
    expect(aborted).toBe(false);
    expect(await stayed).toEqual({ value: 'answer', joined: true });
    const alone = calls.run('k', call, second.signal);
    second.abort(new Error('second left'));
    await expect(alone).rejects.toThrow('second left');
    expect(aborted).toBe(true);
  });
});
