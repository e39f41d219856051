// JSON replies with a schema: an unexpected shape is a failure of the back end, named with the field, and the reply is kept.
import { z } from 'zod';
import { ReplyError } from './errors.js';
import type { HttpReply } from './http/message.js';

/** A field of a result that may be missing; one of another type counts as missing, so that it costs itself and not the whole reply. */
export const optionalText = z.string().optional().catch(undefined);

/** Throws ReplyError. */
export function parseReply<S extends z.ZodType>(reply: HttpReply, schema: S, provider: string): z.infer<S> {
  const malformed = (found: string): ReplyError =>
    new ReplyError(`${provider} sent a malformed reply`, { where: reply.url, found }, [reply]);
  let json: unknown;
  try {
    json = JSON.parse(Buffer.from(reply.bytes).toString('utf8'));
  } catch {
    throw malformed(`${reply.mediaType || 'untyped'} data that is no JSON`);
  }
  const parsed = schema.safeParse(json);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw malformed(`${issue?.path.join('.') || 'root'}: ${issue?.message ?? 'malformed'}`);
}
