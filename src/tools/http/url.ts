// Addresses from outside and from options, parsed once.
import { UsageError } from '../../errors.js';

/** Null for what is no absolute address (Node 20 lacks URL.parse). */
export function parseUrl(text: string, base?: string): URL | null {
  try {
    return new URL(text, base);
  } catch {
    return null;
  }
}

/** An endpoint that the user configured. Throws UsageError naming the option. */
export function requireEndpoint(text: string, option: string): URL {
  const url = parseUrl(text);
  if (url && (url.protocol === 'http:' || url.protocol === 'https:') && url.username === '') return url;
  // The text itself may hold a password.
  throw new UsageError('not an address', { where: option, expected: 'http://HOST[:PORT]/… or https://…' });
}

/** `path` below a base address, whether or not the base ends in a slash. */
export function below(base: URL, path: string): URL {
  const url = new URL(base.href);
  url.pathname = `${url.pathname.replace(/\/+$/, '')}/${path}`;
  return url;
}
