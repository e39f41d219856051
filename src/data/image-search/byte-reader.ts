// Little-endian values out of a byte array, one after the other, never past its end.
import { DataError } from '../../errors.js';

export interface ByteReader {
  readonly where: string;
  position(): number;
  uint8(): number;
  uint16(): number;
  uint32(): number;
  /** Lengths; larger than 2^53 is malformed. */
  uint64(): number;
  int32(): number;
  /** Big-endian, the one exception in pickles. */
  float64(): number;
  /** Two's complement of any length: a number where it is exact, else a bigint. */
  long(length: number): number | bigint;
  bytes(length: number): Uint8Array;
  text(length: number): string;
  /** Up to and without the next newline. */
  line(): string;
  malformed(expected: string): DataError;
}

export function createByteReader(bytes: Uint8Array, where: string): ByteReader {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let position = 0;
  const malformed = (expected: string): DataError =>
    new DataError('malformed', { where: `${where}, byte ${position}`, expected });
  const take = (length: number): Buffer => {
    if (length > buffer.length - position) throw malformed(`${length} more bytes`);
    position += length;
    return buffer.subarray(position - length, position);
  };
  return {
    where,
    position: () => position,
    uint8: () => take(1).readUInt8(),
    uint16: () => take(2).readUInt16LE(),
    uint32: () => take(4).readUInt32LE(),
    uint64() {
      const value = take(8).readBigUInt64LE();
      if (value > BigInt(buffer.length)) throw malformed(`${value} more bytes`);
      return Number(value);
    },
    int32: () => take(4).readInt32LE(),
    float64: () => take(8).readDoubleBE(),
    long(length) {
      const value = BigInt.asIntN(length * 8, BigInt(`0x${Buffer.from(take(length)).reverse().toString('hex') || '0'}`));
      return BigInt(Number(value)) === value ? Number(value) : value;
    },
    bytes: take,
    text: (length) => take(length).toString(),
    line() {
      const end = buffer.indexOf(10, position);
      if (end === -1) throw malformed('the end of the line');
      const text = buffer.toString('utf8', position, end);
      position = end + 1;
      return text;
    },
    malformed,
  };
}
