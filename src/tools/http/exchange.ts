// One exchange: request, head, bounded body. Redirects come back as such.
import { Agent, request as send } from 'undici';
import { ToolError } from '../../errors.js';
import type { Redactor } from '../redaction.js';
import { acceptEncoding, readBody, tooLarge } from './body.js';
import type { Guard } from './guard.js';
import type { HttpReply, HttpRequest } from './message.js';

export interface Exchanged {
  readonly reply: HttpReply;
  /** Where a redirect leads. */
  readonly location?: string;
  readonly retryAfter?: string | undefined;
}

/** `guarded` checks what DNS answers at every connection; `open` is for hosts that the user named. */
export function createAgents(guard: Guard): { readonly guarded: Agent; readonly open: Agent } {
  const limits = { connections: 16, keepAliveTimeout: 4_000, maxHeaderSize: 32_768 };
  return { guarded: new Agent({ ...limits, connect: { lookup: guard.lookup } }), open: new Agent(limits) };
}

const USER_AGENT = 'ssr (research harness for search agents)';

export async function exchange(request: HttpRequest, agent: Agent, redactor: Redactor, signal: AbortSignal): Promise<Exchanged> {
  const { url, method = 'GET', headers, body, maxBytes } = request;
  const head = await send(url, {
    dispatcher: agent,
    method,
    headers: { 'user-agent': USER_AGENT, 'accept-encoding': acceptEncoding, ...headers },
    body: body ?? null,
    signal,
  });
  const where = redactor.all(url.href);
  // Whoever reads the body sees its errors; those of a body that is dropped half-read are nobody's.
  head.body.on('error', () => undefined);
  const header = (name: string): string | undefined => [head.headers[name]].flat()[0];
  const { mediaType, charset } = parseContentType(header('content-type'));
  const bare = { url: where, status: head.statusCode, mediaType, charset };
  const location = header('location');
  if (head.statusCode >= 300 && head.statusCode < 400 && location !== undefined) {
    head.body.destroy();
    return { reply: { ...bare, bytes: new Uint8Array() }, location };
  }
  const successful = head.statusCode < 300;
  if (successful && request.accepts && !request.accepts.test(mediaType)) {
    head.body.destroy();
    throw new ToolError('a type that is not read', { where, found: mediaType || 'no content type' });
  }
  if (Number(header('content-length') ?? 0) > maxBytes) {
    head.body.destroy();
    throw tooLarge(maxBytes);
  }
  const bytes = await readBody(head.body, header('content-encoding'), maxBytes);
  return { reply: { ...bare, bytes }, retryAfter: header('retry-after') };
}

function parseContentType(value: string | undefined): { mediaType: string; charset: string | null } {
  const [mediaType = '', ...parameters] = (value ?? '').split(';').map((part) => part.trim());
  const charset = parameters.map((parameter) => /^charset="?([^"]+)"?$/i.exec(parameter)?.[1]).find((name) => name !== undefined);
  return { mediaType: mediaType.toLowerCase(), charset: charset?.toLowerCase() ?? null };
}
