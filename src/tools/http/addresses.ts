// Which addresses the tools may talk to: the public internet, and what an allow-list names.
import { BlockList, isIP } from 'node:net';

/** Ranges that are not the public internet (IANA special-purpose registries), and the metadata service of Azure. */
const NOT_PUBLIC = {
  ipv4: [
    '0.0.0.0/8',
    '10.0.0.0/8',
    '100.64.0.0/10',
    '127.0.0.0/8',
    '168.63.129.16/32',
    '169.254.0.0/16',
    '172.16.0.0/12',
    '192.0.0.0/24',
    '192.0.2.0/24',
    '192.88.99.0/24',
    '192.168.0.0/16',
    '198.18.0.0/15',
    '198.51.100.0/24',
    '203.0.113.0/24',
    '224.0.0.0/4',
    '240.0.0.0/4',
  ],
  // Addresses that embed an IPv4 address (mapped, translated, tunnelled) are refused whole: they would be a way around the list above.
  ipv6: [
    '::/96',
    '::ffff:0:0/96',
    '64:ff9b::/96',
    '64:ff9b:1::/48',
    '100::/64',
    '2001::/23',
    '2001:db8::/32',
    '2002::/16',
    '3fff::/20',
    '5f00::/16',
    'fc00::/7',
    'fe80::/10',
    'fec0::/10',
    'ff00::/8',
  ],
} as const;

// One list per family: Node compares an IPv4 address with IPv6 rules as well, by mapping it.
const notPublic = { ipv4: blockListOf(NOT_PUBLIC.ipv4), ipv6: blockListOf(NOT_PUBLIC.ipv6) };

/** False for anything that is not an IP address of the public internet. */
export function isPublicAddress(address: string): boolean {
  const family = familyOf(address);
  return family !== null && !notPublic[family].check(address, family);
}

export interface AllowList {
  /** Whether a URL's host, with its port, is named. */
  admitsHost(hostname: string, port: number): boolean;
  admitsAddress(address: string): boolean;
}

/** Entries are `host`, `host:port`, `[ipv6]:port`, an address or a range such as `10.1.0.0/16`. */
export function createAllowList(entries: readonly string[]): AllowList {
  const hosts = new Set(entries.map((entry) => entry.toLowerCase()));
  const named = entries.filter((entry) => entry.includes('/') || isIP(entry) !== 0);
  const ranges = { ipv4: blockListOf(ofFamily(named, 'ipv4')), ipv6: blockListOf(ofFamily(named, 'ipv6')) };
  return {
    admitsHost(hostname, port) {
      const host = hostname.toLowerCase();
      return hosts.has(host) || hosts.has(`${host}:${port}`) || this.admitsAddress(host.replace(/^\[|\]$/g, ''));
    },
    admitsAddress(address) {
      const family = familyOf(address);
      return family !== null && ranges[family].check(address, family);
    },
  };
}

function familyOf(address: string): 'ipv4' | 'ipv6' | null {
  const version = isIP(address);
  return version === 4 ? 'ipv4' : version === 6 ? 'ipv6' : null;
}

function ofFamily(entries: readonly string[], family: 'ipv4' | 'ipv6'): string[] {
  return entries.filter((entry) => familyOf(entry.split('/')[0] ?? '') === family);
}

function blockListOf(ranges: readonly string[]): BlockList {
  const list = new BlockList();
  for (const range of ranges) {
    const [network = '', prefix] = range.split('/');
    const family = familyOf(network);
    if (family === null) continue;
    if (prefix === undefined) list.addAddress(network, family);
    else list.addSubnet(network, Number(prefix), family);
  }
  return list;
}
