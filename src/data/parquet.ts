// Parquet files read one whole row group at a time: a slice of a group costs as much as the group, again and again.
import { type FileHandle, open } from 'node:fs/promises';
import { type AsyncBuffer, type FileMetaData, parquetMetadataAsync, parquetReadObjects, parquetSchema } from 'hyparquet';
import { compressors as packagedCompressors } from 'hyparquet-compressors';
import { DataError } from '../errors.js';
import type { CellRow } from './cells.js';
import { refuseLfsPointer } from './hub/lfs-pointer.js';

export interface TableColumn {
  readonly name: string;
  /** A single value that is no raw binary: cheap to read and fit to be kept as meta. */
  readonly plain: boolean;
  readonly description: string;
}

export interface TableFile {
  readonly rows: number;
  readonly columns: readonly TableColumn[];
  readonly groupCount: number;
  /** Bytes of the largest group, uncompressed. */
  readonly largestGroupBytes: number;
  readGroup(group: number, columns: readonly string[]): Promise<CellRow[]>;
  close(): Promise<void>;
}

/** Peak memory of reading a group of pictures, as a multiple of its size: read once, unpacked once, and room for the rest. */
export const memoryPerGroupByte = 3;

/** Snappy is left to hyparquet itself: the packaged one is WebAssembly, whose memory holds every page twice more and never shrinks. */
const { SNAPPY: _, ...compressors } = packagedCompressors;

/** Throws DataError for anything that is not a parquet file. */
export async function openTable(path: string): Promise<TableFile> {
  await refuseLfsPointer(path);
  const handle = await open(path, 'r');
  const file = await fileBuffer(handle);
  let metadata: FileMetaData;
  try {
    metadata = await parquetMetadataAsync(file);
  } catch (cause) {
    await handle.close();
    throw unreadable(path, cause);
  }
  const groups = metadata.row_groups;
  const starts = groups.map((_, i) => groups.slice(0, i).reduce((rows, group) => rows + Number(group.num_rows), 0));
  return {
    rows: Number(metadata.num_rows),
    columns: columnsOf(metadata),
    groupCount: groups.length,
    largestGroupBytes: Math.max(0, ...groups.map((group) => Number(group.total_byte_size))),
    async readGroup(index, columns) {
      const rowStart = starts[index] ?? 0;
      const rowEnd = rowStart + Number(groups[index]?.num_rows ?? 0);
      // utf8 would decode pictures, which are unannotated byte arrays, as text; annotated columns stay texts.
      const options = { file, metadata, columns: [...columns], rowStart, rowEnd, compressors, utf8: false };
      return parquetReadObjects(options).catch((cause: unknown) => {
        throw unreadable(path, cause);
      });
    },
    close: () => handle.close(),
  };
}

function unreadable(path: string, cause: unknown): DataError {
  const found = cause instanceof Error ? cause.message : String(cause);
  return new DataError('not a readable parquet file', { where: path, found, cause });
}

function columnsOf(metadata: FileMetaData): TableColumn[] {
  return parquetSchema(metadata).children.map(({ element, children }) => {
    const text = element.converted_type === 'UTF8' || element.logical_type?.type === 'STRING';
    const kind =
      children.length > 0 ? (element.converted_type === 'LIST' ? 'list' : 'struct') : text ? 'string' : (element.type ?? 'null');
    const plain = children.length === 0 && element.repetition_type !== 'REPEATED' && (text || !/BYTE_ARRAY|INT96/.test(kind));
    return { name: element.name, plain, description: `${element.name}: ${kind}` };
  });
}

/** Reads straight into the buffer that is handed on; a stream would hold every byte twice. */
async function fileBuffer(handle: FileHandle): Promise<AsyncBuffer> {
  const { size } = await handle.stat();
  return {
    byteLength: size,
    async slice(start, end = size) {
      const bytes = new Uint8Array(Math.max(0, Math.min(end, size) - start));
      for (let filled = 0; filled < bytes.length; ) {
        // Node ends the process on reads of 2 GB and more.
        const part = bytes.subarray(filled, filled + (1 << 30));
        const { bytesRead } = await handle.read(part, 0, part.length, start + filled);
        if (bytesRead === 0) throw new DataError('the file ended early', { expected: `${bytes.length} bytes at ${start}` });
        filled += bytesRead;
      }
      return bytes.buffer;
    },
  };
}
