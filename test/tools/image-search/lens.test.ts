import sharp from 'sharp';
import { describe, expect, it } from 'vitest';
import { ToolError, UsageError } from '../../../src/errors.js';
import type { ToolSearchResult } from '../../../src/tools/provider.js';
import { tools } from '../support/create.js';
import { json, type Loopback, startServer } from '../support/loopback.js';
import { picture } from '../support/pictures.js';

const key = 'k-0123456789abcdef';

/** SerpApi, the image host and the web of thumbnails in one server. */
async function lens({
  matches,
  imageHost,
  error,
}: {
  matches?: unknown[];
  imageHost?: (server: Loopback) => string;
  error?: string;
}) {
  const red = await picture('red');
  const server: Loopback = await startServer(({ method, url }, response) => {
    if (url.pathname === '/search.json')
      return json(response, error ? { error } : { search_metadata: {}, visual_matches: matches });
    if (method === 'PUT') return void response.writeHead(200).end();
    if (url.pathname === '/good.png') return void response.writeHead(200, { 'content-type': 'image/png' }).end(red.bytes);
    if (url.pathname === '/cut.png') return void response.end(red.bytes.subarray(0, 60));
    response.writeHead(404).end();
  });
  const made = await tools(
    {
      imageSearch: {
        provider: 'lens',
        key,
        baseUrl: server.origin,
        results: 3,
        imageHost: imageHost?.(server) ?? `${server.origin}/bucket/{name}?X-Amz-Signature=0123456789abcdef0123`,
      },
    },
    { allow: [server.host] },
  );
  const search = async (): Promise<readonly ToolSearchResult[]> => made.toolbox.imageSearch!.search(await picture('blue'));
  return { server, made, search, red };
}

const match = (server: string, name: string) => ({
  position: 1,
  title: `Page\n${name}`,
  link: `https://example.org/${name}`,
  source: 'Example',
  thumbnail: `${server}/${name}.png`,
});

describe('lens', () => {
  it('uploads the picture, asks with its public address and fetches the thumbnails', async () => {
    const matches: unknown[] = [];
    const { server, search, red, made } = await lens({ matches });
    matches.push(match(server.origin, 'good'));
    const [result] = await search();
    expect(result).toMatchObject({ title: 'Page good', url: 'https://example.org/good', source: 'Example' });
    expect(result?.thumbnail?.sha256).toBe(red.sha256);
    expect(result).not.toHaveProperty('thumbnailUrl');
    const [put, get] = server.received;
    const blue = await picture('blue');
    expect(put).toMatchObject({ method: 'PUT', headers: { 'content-type': 'image/png' } });
    expect(put!.url.pathname).toBe(`/bucket/${blue.sha256}.png`);
    expect(Buffer.compare(put!.body, blue.bytes)).toBe(0);
    expect(Object.fromEntries(get!.url.searchParams)).toMatchObject({
      engine: 'google_lens',
      type: 'visual_matches',
      url: `${server.origin}/bucket/${blue.sha256}.png`,
    });
    expect(made.statistics().steps.map(({ provider, step }) => `${provider} ${step}`)).toEqual([
      'image-host upload',
      'lens search',
      'thumbnail thumbnail',
    ]);
  });

  it('never lets a lost thumbnail shift the others', async () => {
    const matches: unknown[] = [];
    const { server, search, red } = await lens({ matches });
    matches.push(match(server.origin, 'lost'), match(server.origin, 'cut'), match(server.origin, 'good'));
    const results = await search();
    expect(results.map(({ title, thumbnail }) => [title, thumbnail?.sha256])).toEqual([
      ['Page lost', undefined],
      ['Page cut', undefined],
      ['Page good', red.sha256],
    ]);
    expect(results.map(({ fallback }) => fallback?.includes('the thumbnail is lost'))).toEqual([true, true, undefined]);
  });

  it('reads thumbnails that the reply brings along', async () => {
    const { bytes, sha256 } = await picture('green');
    const thumbnail = `data:image/png;base64,${Buffer.from(bytes).toString('base64')}`;
    const { search } = await lens({
      matches: [
        { title: 'Inline', thumbnail },
        { title: 'Bad', thumbnail: 'data:text/html,<b>' },
      ],
    });
    expect((await search()).map((result) => result.thumbnail?.sha256)).toEqual([sha256, undefined]);
  });

  it('loses a thumbnail that unpacks to a huge picture', async () => {
    const bomb = await sharp({ create: { width: 9_000, height: 9_000, channels: 3, background: 'white' } })
      .png()
      .toBuffer();
    const thumbnail = `data:image/png;base64,${bomb.toString('base64')}`;
    const { search } = await lens({ matches: [{ title: 'Bomb', thumbnail }] });
    expect((await search())[0]).toMatchObject({ title: 'Bomb', fallback: expect.stringContaining('at most 25000000 pixels') });
  });

  it('knows an empty result and a failed one', async () => {
    const empty = await lens({ error: "Google Lens hasn't returned any results for this query." });
    expect(await empty.search()).toEqual([]);
    const failed = await lens({ error: 'We could not fetch the image.' });
    await expect(failed.search()).rejects.toThrow('lens failed');
  });

  it('runs an upload command without a shell and takes the last address it prints', async () => {
    const { server, search } = await lens({
      matches: [],
      imageHost: ({ origin }) =>
        `${process.execPath} -e "const [f, n] = process.argv.slice(1); if (!require('fs').statSync(f).size) process.exit(3); console.log('see https://help.example\\n' + '${origin}/up/' + n)" {file} {name};echo`,
    });
    await search();
    expect(server.received[0]!.url.searchParams.get('url')).toMatch(/\/up\/[0-9a-f]{64}\.png;echo$/);
  });

  it.each([
    [`${process.execPath} -e "console.error('denied'); process.exit(2)" {file}`, 'exit code 2 denied'],
    [`${process.execPath} -e "console.log('done')" {file}`, 'printed no address'],
    ['no-such-uploader {file}', 'ENOENT'],
  ])('tells why %s failed', async (imageHost, reason) => {
    const { search } = await lens({ matches: [], imageHost: () => imageHost });
    await expect(search()).rejects.toThrow(ToolError);
    await expect(search()).rejects.toThrow(reason);
  });

  it('does not pay for a picture at a private address', async () => {
    const { server, search } = await lens({
      matches: [],
      imageHost: ({ origin }) => `${origin}/in/{name} http://192.168.1.9/{name}`,
    });
    await expect(search()).rejects.toThrow('address refused');
    expect(server.received.map(({ method }) => method)).toEqual(['PUT', 'PUT'].slice(0, 1));
  });

  it.each([
    [undefined, 'lens needs a public address for every picture'],
    ['upload-it', 'the upload command has no place for the picture'],
    ['https://host.example/fixed.png', 'the image host cannot tell pictures apart'],
  ])('is refused before the run with image host %s', async (imageHost, message) => {
    const imageSearch = { provider: 'lens', key, results: 3, ...(imageHost && { imageHost }) } as const;
    await expect(tools({ imageSearch })).rejects.toThrow(UsageError);
    await expect(tools({ imageSearch })).rejects.toThrow(message);
  });
});
