// Reads the index of safetensors files: an 8-byte length, a JSON header, then the tensors' bytes.
import { open, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { CheckpointError } from '../../errors.js';

const BYTES_PER_VALUE: Readonly<Record<string, number>> = { F32: 4, BF16: 2, F16: 2 };
const LONGEST_HEADER_BYTES = 100_000_000;

export interface TensorEntry {
  readonly name: string;
  readonly file: string;
  readonly dtype: 'F32' | 'BF16' | 'F16';
  readonly shape: readonly number[];
  /** Position of the first byte in the file. */
  readonly offset: number;
}

const natural = z.number().int().nonnegative();
const headerSchema = z.record(
  z.string(),
  z.object({ dtype: z.string(), shape: z.array(natural), data_offsets: z.tuple([natural, natural]) }),
);
const shardIndexSchema = z.object({ weight_map: z.record(z.string(), z.string()) });

export interface TensorIndex {
  /** The entry of a tensor; throws a CheckpointError that names it when it is absent, of another shape or of a type we cannot read. */
  require(name: string, shape: readonly number[]): TensorEntry;
  readonly files: readonly string[];
}

/** Opens model.safetensors, or the shards that model.safetensors.index.json lists. */
export async function readTensorIndex(directory: string): Promise<TensorIndex> {
  const files = await weightFiles(directory);
  const headers = new Map<string, RawEntry>();
  for (const file of files) {
    for (const entry of await readHeader(file)) headers.set(entry.name, entry);
  }
  return {
    files,
    require: (name, shape) => checkEntry(headers.get(name), name, shape, directory),
  };
}

interface RawEntry {
  readonly name: string;
  readonly file: string;
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly offset: number;
}

async function weightFiles(directory: string): Promise<string[]> {
  const indexFile = join(directory, 'model.safetensors.index.json');
  const text = await readFile(indexFile, 'utf8').catch(() => null);
  if (text === null) return [join(directory, 'model.safetensors')];
  const parsed = shardIndexSchema.safeParse(parseJson(text, indexFile));
  if (!parsed.success)
    throw new CheckpointError('not a shard index', { where: indexFile, expected: 'a weight_map of tensor names to files' });
  return [...new Set(Object.values(parsed.data.weight_map))].sort().map((name) => join(directory, name));
}

async function readHeader(file: string): Promise<RawEntry[]> {
  const fileBytes = await stat(file).then(
    (found) => {
      if (!found.isFile()) throw new CheckpointError('no file', { where: file, expected: 'a safetensors file' });
      return found.size;
    },
    (cause: unknown) => {
      throw new CheckpointError('the weights are missing', {
        where: file,
        remedy: 'Pass a folder in Hugging Face format',
        cause,
      });
    },
  );
  const handle = await open(file);
  try {
    const length = fileBytes < 8 ? Number.NaN : Number((await handle.read(Buffer.alloc(8), 0, 8, 0)).buffer.readBigUInt64LE(0));
    if (!(length <= Math.min(fileBytes - 8, LONGEST_HEADER_BYTES))) {
      throw new CheckpointError('truncated or not a safetensors file', {
        where: file,
        expected: `a header of ${length} bytes`,
        found: `${fileBytes} bytes in all`,
      });
    }
    const header = (await handle.read(Buffer.alloc(length), 0, length, 8)).buffer.toString('utf8');
    return headerEntries(header, file, 8 + length, fileBytes);
  } finally {
    await handle.close();
  }
}

function headerEntries(text: string, file: string, dataStart: number, fileBytes: number): RawEntry[] {
  const { __metadata__: _metadata, ...tensors } = parseJson(text, file) as Record<string, unknown>;
  const parsed = headerSchema.safeParse(tensors);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    throw new CheckpointError('malformed safetensors header', {
      where: `${file}: ${issue?.path.join('.') ?? ''}`,
      found: issue?.message ?? '',
    });
  }
  return Object.entries(parsed.data).map(
    ([
      name,
      {
        dtype,
        shape,
        data_offsets: [begin, end],
      },
    ]) => {
      checkExtent(name, file, dtype, shape, end - begin);
      if (dataStart + end > fileBytes) {
        throw new CheckpointError(`truncated: tensor ${name} ends beyond the file`, {
          where: file,
          expected: `at least ${dataStart + end} bytes`,
          found: `${fileBytes}`,
          remedy: 'Download or copy the file again',
        });
      }
      return { name, file, dtype, shape, offset: dataStart + begin };
    },
  );
}

function checkExtent(name: string, file: string, dtype: string, shape: readonly number[], bytes: number): void {
  const width = BYTES_PER_VALUE[dtype];
  if (width === undefined) return;
  const expected = shape.reduce((product, side) => product * side, width);
  if (expected !== bytes) {
    throw new CheckpointError(`the header's offsets of tensor ${name} contradict its shape`, {
      where: file,
      expected: `${expected} bytes for ${dtype} [${shape.join(', ')}]`,
      found: `${bytes}`,
    });
  }
}

function checkEntry(entry: RawEntry | undefined, name: string, shape: readonly number[], directory: string): TensorEntry {
  if (entry === undefined) {
    throw new CheckpointError(`tensor ${name} is missing`, {
      where: directory,
      expected: `shape [${shape.join(', ')}]`,
      remedy: 'Check that config.json belongs to these weights',
    });
  }
  if (entry.shape.length !== shape.length || entry.shape.some((side, axis) => side !== shape[axis])) {
    throw new CheckpointError(`tensor ${name} has a wrong shape`, {
      where: entry.file,
      expected: `[${shape.join(', ')}]`,
      found: `[${entry.shape.join(', ')}]`,
    });
  }
  if (entry.dtype !== 'F32' && entry.dtype !== 'BF16' && entry.dtype !== 'F16') {
    throw new CheckpointError(`tensor ${name} has an unsupported type`, {
      where: entry.file,
      expected: Object.keys(BYTES_PER_VALUE).join(', '),
      found: entry.dtype,
    });
  }
  return { ...entry, dtype: entry.dtype };
}

function parseJson(text: string, file: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new CheckpointError('not valid JSON', { where: file, cause });
  }
}
