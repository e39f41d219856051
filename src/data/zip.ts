// Zip archives, read entry by entry: the directory at the end of the file says where each one begins.
import { type FileHandle, open } from 'node:fs/promises';
import { promisify } from 'node:util';
import { crc32, inflateRaw } from 'node:zlib';
import { DataError } from '../errors.js';

export interface ZipFile {
  /** Paths of the files inside, without folders. */
  readonly names: readonly string[];
  /** Throws DataError for an entry that is damaged, encrypted or packed in an unusual way. */
  read(name: string): Promise<Uint8Array>;
}

interface Entry {
  readonly name: string;
  readonly method: number;
  readonly encrypted: boolean;
  readonly crc: number;
  readonly packedBytes: number;
  readonly bytes: number;
  readonly offset: number;
}

const inflate = promisify(inflateRaw);
const stored = 0;
const deflated = 8;
const inZip64 = 0xffffffff;
const largestEntry = 1 << 30;
/** Node ends the process on reads of 2 GB and more. */
const largestRead = 1 << 30;

/** Throws DataError when the file is no zip archive. */
export async function openZip(path: string): Promise<ZipFile> {
  const entries = await withFile(path, (file) => readDirectory(file, path));
  const byName = new Map(entries.map((entry) => [entry.name, entry]));
  return {
    names: [...byName.keys()],
    async read(name) {
      const entry = byName.get(name);
      if (entry === undefined) throw new DataError('no such entry', { where: path, found: name });
      return withFile(path, (file) => readEntry(file, entry, `${path}, ${name}`));
    },
  };
}

async function readDirectory(file: FileHandle, path: string): Promise<Entry[]> {
  const { size } = await file.stat();
  const tail = await readAt(file, Math.max(0, size - 0xffff - 22), Math.min(size, 0xffff + 22), path);
  const end = tail.lastIndexOf('PK\x05\x06', undefined, 'latin1');
  if (end === -1 || end + 22 > tail.length) throw new DataError('not a zip archive', { where: path });
  let start = tail.readUInt32LE(end + 16);
  let length = tail.readUInt32LE(end + 12);
  let count = tail.readUInt16LE(end + 10);
  const locator = tail.lastIndexOf('PK\x06\x07', end, 'latin1');
  if ((start === inZip64 || length === inZip64 || count === 0xffff) && locator !== -1) {
    const record = await readAt(file, Number(tail.readBigUInt64LE(locator + 8)), 56, path);
    count = Number(record.readBigUInt64LE(32));
    length = Number(record.readBigUInt64LE(40));
    start = Number(record.readBigUInt64LE(48));
  }
  const directory = await readAt(file, start, length, path);
  const entries: Entry[] = [];
  let seen = 0;
  for (let at = 0; at + 46 <= directory.length && directory.readUInt32LE(at) === 0x02014b50; ) {
    const [nameLength, extraLength, commentLength] = [28, 30, 32].map((field) => directory.readUInt16LE(at + field)) as [
      number,
      number,
      number,
    ];
    const entry = readHeader(directory.subarray(at, at + 46 + nameLength + extraLength), nameLength);
    if (!entry.name.endsWith('/')) entries.push(entry);
    seen += 1;
    at += 46 + nameLength + extraLength + commentLength;
  }
  if (seen !== count)
    throw new DataError('the archive is damaged', { where: path, expected: `${count} entries`, found: `${seen}` });
  return entries;
}

function readHeader(header: Buffer, nameLength: number): Entry {
  let packedBytes = header.readUInt32LE(20);
  let bytes = header.readUInt32LE(24);
  let offset = header.readUInt32LE(42);
  const extra = header.subarray(46 + nameLength);
  for (let at = 0; at + 4 <= extra.length; at += 4 + extra.readUInt16LE(at + 2)) {
    if (extra.readUInt16LE(at) !== 1) continue;
    // The Zip64 field holds only the values that did not fit, in this order.
    let field = at - 4;
    const next = (): number => {
      field += 8;
      return Number(extra.readBigUInt64LE(field));
    };
    if (bytes === inZip64) bytes = next();
    if (packedBytes === inZip64) packedBytes = next();
    if (offset === inZip64) offset = next();
  }
  return {
    name: header.subarray(46, 46 + nameLength).toString(),
    method: header.readUInt16LE(10),
    encrypted: (header.readUInt16LE(8) & 1) === 1,
    crc: header.readUInt32LE(16),
    packedBytes,
    bytes,
    offset,
  };
}

async function readEntry(file: FileHandle, entry: Entry, where: string): Promise<Uint8Array> {
  if (entry.encrypted) throw new DataError('the entry is encrypted', { where });
  if (entry.bytes > largestEntry) throw new DataError('the entry is too large', { where, found: `${entry.bytes} bytes` });
  const local = await readAt(file, entry.offset, 30, where);
  const start = entry.offset + 30 + local.readUInt16LE(26) + local.readUInt16LE(28);
  const packed = await readAt(file, start, entry.packedBytes, where);
  const bytes = await unpack(packed, entry, where);
  if (bytes.length !== entry.bytes || crc32(bytes) !== entry.crc) throw new DataError('the entry is damaged', { where });
  return bytes;
}

async function unpack(packed: Buffer, { method, bytes }: Entry, where: string): Promise<Buffer> {
  if (method === stored) return packed;
  if (method !== deflated)
    throw new DataError('unknown packing', { where, expected: 'stored or deflated', found: `method ${method}` });
  return inflate(packed, { maxOutputLength: Math.max(1, bytes) }).catch((cause: unknown) => {
    throw new DataError('the entry is damaged', { where, cause });
  });
}

async function readAt(file: FileHandle, position: number, length: number, where: string): Promise<Buffer> {
  const { size } = await file.stat();
  if (position + length > size) throw new DataError('the archive ends early', { where });
  const buffer = Buffer.alloc(length);
  for (let filled = 0; filled < length; ) {
    const { bytesRead } = await file.read(buffer, filled, Math.min(length - filled, largestRead), position + filled);
    if (bytesRead === 0) throw new DataError('the archive ends early', { where });
    filled += bytesRead;
  }
  return buffer;
}

async function withFile<T>(path: string, run: (file: FileHandle) => Promise<T>): Promise<T> {
  const file = await open(path, 'r');
  try {
    return await run(file);
  } catch (cause) {
    // A field that points outside the buffer it stands in.
    if (cause instanceof RangeError) throw new DataError('the archive is damaged', { where: path, cause });
    throw cause;
  } finally {
    await file.close();
  }
}
