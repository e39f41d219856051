// The ustar archive format, as far as a snapshot needs it: plain files with short names, written and read as streams.
import { DataError } from '../../errors.js';

export interface TarFile {
  readonly name: string;
  readonly bytes: Uint8Array;
}

const blockSize = 512;
/** Nothing in a tool store is larger; an archive that claims so is damaged or hostile. */
const mostFileBytes = 64_000_000;

/** Headers hold nothing of this machine (no times, no owners), so equal stores make equal archives. */
export async function* writeTar(files: AsyncIterable<TarFile>): AsyncGenerator<Buffer> {
  for await (const { name, bytes } of files) {
    yield header(name, bytes.length);
    yield Buffer.from(bytes);
    const rest = bytes.length % blockSize;
    if (rest > 0) yield Buffer.alloc(blockSize - rest);
  }
  yield Buffer.alloc(2 * blockSize);
}

/** Throws DataError for anything but plain files, and for a file that ends early; `where` names the archive. */
export async function* readTar(chunks: AsyncIterable<Buffer>, where: string): AsyncGenerator<TarFile> {
  const source = createSource(chunks, where);
  for (;;) {
    const head = await source.take(blockSize);
    if (head.every((byte) => byte === 0)) return;
    const { name, size } = parseHeader(head, where);
    const bytes = await source.take(size);
    await source.take((blockSize - (size % blockSize)) % blockSize);
    yield { name, bytes };
  }
}

function header(name: string, size: number): Buffer {
  const block = Buffer.alloc(blockSize);
  if (Buffer.byteLength(name) > 100) throw new DataError('a name is too long for the archive', { found: name });
  block.write(name, 0);
  block.write('0000644\0', 100);
  block.write('0000000\0', 108);
  block.write('0000000\0', 116);
  block.write(`${size.toString(8).padStart(11, '0')}\0`, 124);
  block.write('00000000000\0', 136);
  block.write('0', 156);
  block.write('ustar\u000000', 257);
  block.write(`${checksum(block).toString(8).padStart(6, '0')}\0 `, 148);
  return block;
}

function parseHeader(block: Buffer, where: string): { name: string; size: number } {
  const field = (start: number, length: number): string =>
    (block.toString('utf8', start, start + length).split('\0')[0] ?? '').trim();
  const name = field(0, 100);
  const size = Number.parseInt(field(124, 12), 8);
  const plain = field(156, 1) === '0' || field(156, 1) === '';
  if (Number.parseInt(field(148, 8), 8) !== checksum(block) || !plain || !(size >= 0 && size <= mostFileBytes)) {
    throw new DataError('not a snapshot of a tool store', {
      where,
      expected: 'a .tar.gz that ssr tools export has written',
      found: name,
    });
  }
  return { name, size };
}

/** The sum of all bytes, those of the sum itself read as spaces. */
function checksum(block: Buffer): number {
  return block.reduce((sum, byte, i) => sum + (i >= 148 && i < 156 ? 32 : byte), 0);
}

function createSource(chunks: AsyncIterable<Buffer>, where: string) {
  const iterator = chunks[Symbol.asyncIterator]();
  let rest: Buffer = Buffer.alloc(0);
  return {
    async take(size: number): Promise<Buffer> {
      const parts: Buffer[] = [rest];
      let length = rest.length;
      while (length < size) {
        const next = await iterator.next();
        if (next.done) throw new DataError('the snapshot ends early', { where });
        parts.push(next.value);
        length += next.value.length;
      }
      const whole = Buffer.concat(parts);
      rest = whole.subarray(size);
      return whole.subarray(0, size);
    },
  };
}
