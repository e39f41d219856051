// Fetching the thumbnails of results: each stays with its result, and one that is lost leaves a gap, never a shift.
import { createHash } from 'node:crypto';
import { DataError, ToolError } from '../../errors.js';
import { decodeRgb, loadImage } from '../../media/image.js';
import type { Image } from '../../types.js';
import { MissingRecordingError, ReplyError } from '../errors.js';
import type { HttpClient } from '../http/client.js';
import { parseUrl } from '../http/url.js';
import type { Provider, ToolSearchResult } from '../provider.js';
import type { Operated } from '../recording/recorded.js';

const MOST_BYTES = 5_000_000;
/** A small file can unpack to a huge picture. */
const MOST_PIXELS = 25_000_000;

export function createThumbnailProvider(http: HttpClient): Provider<string> {
  return {
    kind: 'thumbnail',
    name: 'thumbnail',
    version: '1',
    parameters: { maxBytes: MOST_BYTES },
    subjectOf: (address) => (address.startsWith('data:') ? `data:${sha256(address)}` : address),
    async ask(address, signal) {
      const { bytes, raw } = address.startsWith('data:')
        ? { bytes: decodeDataUrl(address), raw: [] }
        : await download(address, http, signal);
      return { results: [{ thumbnail: await loadThumbnail(bytes, raw) }], raw };
    },
  };
}

export function withThumbnails<S>(search: Operated<S>, thumbnail: Operated<string>): Operated<S> {
  return async (subject, signal) => {
    const results = await search(subject, signal);
    return Promise.all(results.map((result) => withThumbnail(result, thumbnail, signal)));
  };
}

async function withThumbnail(
  { thumbnailUrl, ...result }: ToolSearchResult,
  thumbnail: Operated<string>,
  signal?: AbortSignal,
): Promise<ToolSearchResult> {
  if (thumbnailUrl === undefined) return result;
  try {
    const [found] = await thumbnail(thumbnailUrl, signal);
    return found?.thumbnail ? { ...result, thumbnail: found.thumbnail } : result;
  } catch (error) {
    if (!(error instanceof ToolError) || error instanceof MissingRecordingError) throw error;
    return { ...result, fallback: error.message };
  }
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

async function download(address: string, http: HttpClient, signal?: AbortSignal) {
  const url = parseUrl(address);
  if (!url) throw new ReplyError('not an address', { found: address.slice(0, 200) }, []);
  const reply = await http.send(
    { provider: 'thumbnail', url, origin: 'outside', maxBytes: MOST_BYTES, timeoutMs: 10_000, attempts: 2 },
    signal,
  );
  if (reply.status === 200) return { bytes: reply.bytes, raw: [reply] };
  throw new ReplyError('the thumbnail is lost', { where: reply.url, found: `status ${reply.status}` }, [reply]);
}

/** SerpApi inlines some small pictures. */
function decodeDataUrl(address: string): Uint8Array {
  const encoded = /^data:image\/[\w.+-]+;base64,([A-Za-z0-9+/=\s]+)$/.exec(address)?.[1];
  if (encoded !== undefined && encoded.length < MOST_BYTES) return Buffer.from(encoded, 'base64');
  throw new ReplyError('the thumbnail is lost', { expected: 'a base64 picture', found: address.slice(0, 40) }, []);
}

/** Every pixel is decoded here, so that damage costs one thumbnail and not the question that shows it. */
async function loadThumbnail(bytes: Uint8Array, raw: ReplyError['replies']): Promise<Image> {
  try {
    const image = await loadImage(bytes, 'thumbnail');
    if (image.width * image.height > MOST_PIXELS) {
      throw new DataError('too large', { expected: `at most ${MOST_PIXELS} pixels`, found: `${image.width}x${image.height}` });
    }
    await decodeRgb(image.bytes, 'thumbnail');
    return image;
  } catch (error) {
    if (!(error instanceof DataError)) throw error;
    throw new ReplyError('the thumbnail is lost', { found: error.message }, raw);
  }
}
