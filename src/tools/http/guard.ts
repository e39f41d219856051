// Addresses from outside (result pages, thumbnails, redirects) must not lead into private networks. What DNS answers is checked where the
// connection is made, so the address that was checked is the address that is used.
import { type LookupAddress, type LookupOptions, lookup as systemLookup } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import { ToolError } from '../../errors.js';
import { type AllowList, isPublicAddress } from './addresses.js';

export interface Guard {
  /** Throws ToolError for a URL that may not be asked for; says whether the allow-list names its host. */
  check(url: URL): { readonly allowed: boolean };
  /** For sockets to hosts that the allow-list does not name. */
  readonly lookup: LookupFunction;
}

/** Resolves a name to all its addresses. */
export type Resolve = (
  hostname: string,
  options: LookupOptions & { all: true },
  done: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

export function createGuard(allow: AllowList, resolve: Resolve = systemLookup): Guard {
  return {
    check(url) {
      if (url.protocol !== 'http:' && url.protocol !== 'https:') throw refused(url.protocol, 'an http or https address');
      if (url.username !== '' || url.password !== '') throw refused('credentials in the address', 'an address without them');
      const host = url.hostname.replace(/^\[|\]$/g, '');
      const port = url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port);
      if (allow.admitsHost(url.hostname, port)) return { allowed: true };
      // A literal address is never looked up.
      if (isIP(host) !== 0 && !isPublicAddress(host)) throw notPublic(host, host);
      return { allowed: false };
    },
    lookup(hostname, options, callback) {
      resolve(hostname, { ...options, all: true }, (error, addresses) => {
        if (error) return callback(error, '', 4);
        const inside = addresses.find(({ address }) => !isPublicAddress(address) && !allow.admitsAddress(address));
        if (inside) return callback(notPublic(hostname, inside.address), '', 4);
        const [first] = addresses;
        if (!first) return callback(new ToolError('the name has no address', { where: hostname }), '', 4);
        if (options.all) return callback(null, addresses);
        callback(null, first.address, first.family);
      });
    },
  };
}

function notPublic(host: string, address: string): ToolError {
  return refused(host === address ? address : `${host} at ${address}`, 'a public address; local servers must be allowed by name');
}

function refused(found: string, expected: string): ToolError {
  return new ToolError('address refused', { expected, found });
}
