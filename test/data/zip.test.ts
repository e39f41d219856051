import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { writeZip } from '../../scripts/fixtures/write.js';
import { openZip } from '../../src/data/zip.js';
import { DataError } from '../../src/errors.js';
import { temporaryFolder } from './support.js';

const text = new TextEncoder();
const files = {
  'folder/packed.txt': text.encode('again and again '.repeat(200)),
  'folder/stored é.txt': text.encode('as it is'),
  'empty.txt': new Uint8Array(),
};

let folder: string;
let path: string;
let bytes: Buffer;
beforeAll(async () => {
  folder = await temporaryFolder();
  path = join(folder, 'a.zip');
  await writeZip(path, files);
  bytes = await readFile(path);
});

/** The archive with its bytes changed. */
async function changed(change: (copy: Buffer) => unknown): Promise<string> {
  const copy = Buffer.from(bytes);
  const target = join(folder, `${Math.random()}.zip`);
  const result = change(copy);
  await writeFile(target, result instanceof Buffer ? result : copy);
  return target;
}

describe('a zip archive', () => {
  it('gives its entries, packed or stored', async () => {
    const zip = await openZip(path);
    expect(zip.names).toEqual(Object.keys(files));
    for (const [name, content] of Object.entries(files)) expect(Buffer.compare(await zip.read(name), content)).toBe(0);
    await expect(zip.read('none')).rejects.toThrow(/no such entry, found none/);
  });

  it('is found behind a comment', async () => {
    const comment = Buffer.from('made by hand');
    const target = await changed((copy) => {
      copy.writeUInt16LE(comment.length, copy.length - 2);
      return Buffer.concat([copy, comment]);
    });
    expect((await openZip(target)).names.length).toBe(3);
  });

  it('is large where its numbers stand in the Zip64 record', async () => {
    const target = await changed((copy) => {
      const end = copy.subarray(copy.length - 22);
      const record = Buffer.alloc(56);
      record.writeUInt32LE(0x06064b50, 0);
      record.writeBigUInt64LE(3n, 32);
      record.writeBigUInt64LE(BigInt(end.readUInt32LE(12)), 40);
      record.writeBigUInt64LE(BigInt(end.readUInt32LE(16)), 48);
      const locator = Buffer.alloc(20);
      locator.writeUInt32LE(0x07064b50, 0);
      locator.writeBigUInt64LE(BigInt(copy.length - 22), 8);
      end.writeUInt32LE(0xffffffff, 12);
      end.writeUInt32LE(0xffffffff, 16);
      return Buffer.concat([copy.subarray(0, -22), record, locator, end]);
    });
    const zip = await openZip(target);
    expect(Buffer.from(await zip.read('folder/stored é.txt')).toString()).toBe('as it is');
  });

  it('is refused where it is damaged, encrypted, cut off, or none', async () => {
    const name = 'folder/packed.txt';
    const damaged = await changed((copy) => void copy.writeUInt8(copy.readUInt8(60) ^ 0xff, 60));
    await expect((await openZip(damaged)).read(name)).rejects.toThrow(/packed\.txt: the entry is damaged/);
    const directory = bytes.indexOf('PK\x01\x02', 0, 'latin1');
    const encrypted = await changed((copy) => void copy.writeUInt16LE(1, directory + 8));
    await expect((await openZip(encrypted)).read(name)).rejects.toThrow(/encrypted/);
    const method = await changed((copy) => void copy.writeUInt16LE(99, directory + 10));
    await expect((await openZip(method)).read(name)).rejects.toThrow(/unknown packing.*method 99/);
    await expect(openZip(await changed((copy) => copy.subarray(0, -10)))).rejects.toThrow(/not a zip archive/);
    const outside = await changed((copy) => void copy.writeUInt16LE(0xffff, directory + 30));
    await expect(openZip(outside)).rejects.toThrow(/archive is damaged.*expected 3 entries, found 1/);
  });

  it('never fails but with a reason, wherever a byte is wrong', async () => {
    for (let at = 0; at < bytes.length; at += 3) {
      const target = await changed((copy) => void copy.writeUInt8(copy.readUInt8(at) ^ 0xa5, at));
      const read = async () => {
        const zip = await openZip(target);
        for (const name of zip.names) await zip.read(name);
      };
      await read().catch((error: unknown) => expect(error).toBeInstanceOf(DataError));
    }
  });
});
