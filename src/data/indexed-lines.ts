// A JSONL file whose lines are read when they are needed: memory holds one offset per line, not its text.
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { DataError } from '../errors.js';

export interface IndexedLines {
  readonly sha256: string;
  readonly count: number;
  /** Text of a line by its position among the lines that are not blank. */
  read(position: number): Promise<string>;
}

/** Goes through the file once; `onLine` sees every line that is not blank, with its number in the file. */
export async function indexLines(path: string, onLine: (text: string, lineNumber: number) => void): Promise<IndexedLines> {
  const hash = createHash('sha256');
  const spans: { readonly offset: number; readonly length: number }[] = [];
  let rest: Buffer = Buffer.alloc(0);
  let offset = 0;
  let lineNumber = 0;
  const take = (line: Buffer): void => {
    lineNumber += 1;
    const text = line.toString();
    if (text.trim() !== '') {
      onLine(text, lineNumber);
      spans.push({ offset, length: line.length });
    }
    offset += line.length + 1;
  };
  try {
    for await (const chunk of createReadStream(path, { highWaterMark: 1 << 18 }) as AsyncIterable<Buffer>) {
      hash.update(chunk);
      rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
      let start = 0;
      for (let end = rest.indexOf(10); end !== -1; end = rest.indexOf(10, start)) {
        take(rest.subarray(start, end));
        start = end + 1;
      }
      rest = rest.subarray(start);
    }
  } catch (error) {
    if (error instanceof DataError) throw error;
    throw new DataError('cannot be read', {
      where: path,
      found: (error as NodeJS.ErrnoException).code ?? String(error),
      cause: error,
    });
  }
  if (rest.length > 0) take(rest);
  return { sha256: hash.digest('hex'), count: spans.length, read: (position) => readSpan(path, spans[position]) };
}

async function readSpan(path: string, span: { readonly offset: number; readonly length: number } | undefined): Promise<string> {
  if (span === undefined) throw new DataError('no such line', { where: path });
  const file = await open(path, 'r');
  try {
    const bytes = Buffer.alloc(span.length);
    const { bytesRead } = await file.read(bytes, 0, span.length, span.offset);
    if (bytesRead !== span.length) throw new DataError('the file has changed while it was in use', { where: path });
    return bytes.toString();
  } finally {
    await file.close();
  }
}
