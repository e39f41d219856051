// Fetching a result's page: at most 2 MB and 10 s, HTML or plain text, public addresses only, its main text cut to a token budget.
import { ToolError } from '../../errors.js';
import { ReplyError } from '../errors.js';
import type { HttpClient } from '../http/client.js';
import type { HttpReply } from '../http/message.js';
import { parseUrl } from '../http/url.js';
import { oneLine, type Provider } from '../provider.js';
import type { MainText } from './main-text.js';
import type { PageParser } from './page-parser.js';
import { type CountTokens, cutToTokens } from './token-budget.js';

export interface PageOptions {
  readonly http: HttpClient;
  readonly parser: PageParser;
  /** Most tokens of a page's text. */
  readonly tokens: number;
  readonly countTokens: CountTokens;
  /** Names the tokenizer behind `countTokens` in recordings. */
  readonly tokenizer: string;
}

const TYPES = /^(?:text\/html|application\/xhtml\+xml|text\/plain)$/;
const most = { bytes: 2_000_000, timeMs: 10_000 };

/** One result with `text`; a page that has none is a failure, with the reason. */
export function createPageProvider({ http, parser, tokens, countTokens, tokenizer }: PageOptions): Provider<string> {
  return {
    kind: 'page',
    name: 'page',
    version: '1',
    parameters: { tokens, tokenizer, maxBytes: most.bytes },
    subjectOf: (address) => address,
    async ask(address, signal) {
      const url = parseUrl(address);
      if (!url) throw new ReplyError('not an address', { found: address.slice(0, 200) }, []);
      const reply = await http.send(
        {
          provider: 'page',
          url,
          headers: { accept: 'text/html, application/xhtml+xml, text/plain;q=0.8', 'accept-language': 'en, *;q=0.5' },
          origin: 'outside',
          accepts: TYPES,
          maxBytes: most.bytes,
          timeoutMs: most.timeMs,
          attempts: 2,
        },
        signal,
      );
      requirePage(reply);
      const read = await readText(reply, parser);
      if (!read || read.text === '') throw new ReplyError('the page has no readable text', { where: reply.url }, [reply]);
      const text = cutToTokens(read.text, tokens, countTokens);
      return { results: [{ ...(read.title && { title: oneLine(read.title) }), text, url: reply.url }], raw: [reply] };
    },
  };
}

async function readText(reply: HttpReply, parser: PageParser): Promise<MainText | null> {
  const source = decode(reply);
  if (reply.mediaType === 'text/plain') return { title: null, text: source.trim() };
  try {
    return await parser.parse(source);
  } catch (error) {
    if (!(error instanceof ToolError)) throw error;
    throw new ReplyError(error.message, { where: reply.url }, [reply]);
  }
}

/** A page that refuses us is a failed page, no refused key. */
function requirePage(reply: HttpReply): void {
  if (reply.status === 200) return;
  throw new ReplyError('the page cannot be read', { where: reply.url, found: `status ${reply.status}` }, [reply]);
}

function decode({ bytes, charset }: HttpReply): string {
  const head = Buffer.from(bytes.subarray(0, 2_048)).toString('latin1');
  const name = charset ?? /<meta[^>]+charset=["']?([\w-]+)/i.exec(head)?.[1] ?? 'utf-8';
  try {
    return new TextDecoder(name).decode(bytes);
  } catch {
    return new TextDecoder().decode(bytes);
  }
}
