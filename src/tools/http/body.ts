// Reading a reply without trusting its size: the bytes on the wire and the bytes after decompression are both bounded.
import { pipeline, type Readable, type Transform } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import { ToolError } from '../../errors.js';

const DECODERS: Readonly<Record<string, () => Transform>> = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
};

export const acceptEncoding = 'gzip, deflate, br';

/** The whole body, decompressed; throws ToolError above `maxBytes` and for an encoding that was not asked for. */
export async function readBody(body: Readable, encoding: string | undefined, maxBytes: number): Promise<Uint8Array> {
  const coding = encoding?.trim().toLowerCase() ?? '';
  if (coding === '' || coding === 'identity') return collect(body, maxBytes);
  const decoder = DECODERS[coding]?.();
  if (!decoder) {
    body.on('error', () => undefined).destroy();
    throw new ToolError('unknown content encoding', { expected: acceptEncoding, found: coding });
  }
  let wireBytes = 0;
  // A stream that never decompresses to anything must end as well.
  body.on('data', (chunk: Buffer) => {
    wireBytes += chunk.length;
    if (wireBytes > maxBytes) body.destroy(tooLarge(maxBytes));
  });
  // Errors of either end surface in the decoder's iteration.
  pipeline(body, decoder, () => undefined);
  return collect(decoder, maxBytes);
}

async function collect(stream: Readable, maxBytes: number): Promise<Uint8Array> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > maxBytes) {
      stream.destroy();
      throw tooLarge(maxBytes);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

export function tooLarge(maxBytes: number): ToolError {
  return new ToolError('the reply is too large', { expected: `at most ${maxBytes} bytes` });
}
