import { describe, expect, it } from 'vitest';
import { createAllowList, isPublicAddress } from '../../../src/tools/http/addresses.js';
import { createGuard } from '../../../src/tools/http/guard.js';

describe('public addresses', () => {
  it.each(['8.8.8.8', '1.1.1.1', '93.184.216.34', '172.32.0.1', '2606:4700::1111', '2a00:1450:4001::200e'])(
    'admit %s',
    (address) => {
      expect(isPublicAddress(address)).toBe(true);
    },
  );

  it.each([
    ['127.0.0.1', 'loopback'],
    ['127.9.9.9', 'loopback'],
    ['0.0.0.0', 'this host'],
    ['10.1.2.3', 'private'],
    ['172.16.0.1', 'private'],
    ['192.168.1.1', 'private'],
    ['100.100.100.200', 'shared space and a metadata service'],
    ['169.254.169.254', 'metadata'],
    ['168.63.129.16', 'metadata'],
    ['224.0.0.1', 'multicast'],
    ['255.255.255.255', 'broadcast'],
    ['::1', 'loopback'],
    ['::', 'unspecified'],
    ['fe80::1', 'link-local'],
    ['fd00:ec2::254', 'metadata'],
    ['::ffff:127.0.0.1', 'mapped loopback'],
    ['::ffff:7f00:1', 'mapped loopback'],
    ['64:ff9b::7f00:1', 'translated loopback'],
    ['2002:7f00:1::', 'tunnelled loopback'],
    ['localhost', 'no address'],
  ])('refuse %s (%s)', (address) => {
    expect(isPublicAddress(address)).toBe(false);
  });
});

describe('the guard', () => {
  const guard = createGuard(createAllowList(['127.0.0.1:8000', '10.1.0.0/16', 'retriever.lab', '[::1]:9000']));

  it.each(['http://127.0.0.1:8000/a', 'http://10.1.200.3/', 'http://retriever.lab:5000/', 'http://[::1]:9000/'])(
    'lets %s through by name',
    (address) => {
      expect(guard.check(new URL(address)).allowed).toBe(true);
    },
  );

  it.each([
    'http://127.0.0.1:8001/',
    'http://0x7f.1/',
    'http://2130706433/',
    'http://[::1]/',
    'http://[::ffff:127.0.0.1]/',
    'http://169.254.169.254/latest/meta-data/',
    'file:///etc/passwd',
    'http://user:secret@example.org/',
  ])('refuses %s', (address) => {
    expect(() => guard.check(new URL(address))).toThrow('address refused');
  });

  it('does not repeat credentials in its message', () => {
    expect(() => guard.check(new URL('http://user:hunter22@example.org/'))).not.toThrow('hunter22');
  });

  it('refuses a public name that leads inside, even if only one of its addresses does', async () => {
    const resolving = createGuard(createAllowList([]), (_name, _options, done) =>
      done(null, [
        { address: '93.184.216.34', family: 4 },
        { address: '127.0.0.1', family: 4 },
      ]),
    );
    const error = await new Promise<Error | null>((resolve) =>
      resolving.lookup('rebind.example', { all: true }, (refused) => resolve(refused)),
    );
    expect(error?.message).toContain('rebind.example at 127.0.0.1');
  });
});
