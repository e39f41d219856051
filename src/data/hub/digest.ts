// What identifies a file's content: SHA-256, or Git's own hash of a blob, which the hub gives for files outside LFS.
//   git hash = sha1("blob " + size + "\0" + content)
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';

export function sha256Of(bytes: Uint8Array | string): string {
  return createHash('sha256').update(bytes).digest('hex');
}

export async function sha256OfFile(path: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path, { highWaterMark: 1 << 20 }), hash);
  return hash.digest('hex');
}

export async function gitHashOfFile(path: string): Promise<string> {
  const hash = createHash('sha1').update(`blob ${(await stat(path)).size}\0`);
  await pipeline(createReadStream(path, { highWaterMark: 1 << 20 }), hash);
  return hash.digest('hex');
}

/** Whether a file has the content an etag promises; null when the etag is of neither kind and promises nothing. */
export async function matchesEtag(path: string, etag: string): Promise<{ matches: boolean; found: string } | null> {
  const digest = /^[0-9a-f]{64}$/.test(etag) ? sha256OfFile : /^[0-9a-f]{40}$/.test(etag) ? gitHashOfFile : null;
  if (digest === null) return null;
  const found = await digest(path);
  return { matches: found === etag, found };
}
