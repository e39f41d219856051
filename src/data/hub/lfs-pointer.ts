// Git LFS pointers: a text of about 130 bytes that stands in a repository for a large file.
import { open } from 'node:fs/promises';
import { DataError } from '../../errors.js';

const signature = 'version https://git-lfs';

/** Throws DataError when the file is a pointer instead of the data it points to. */
export async function refuseLfsPointer(path: string, where: string = path): Promise<void> {
  const file = await open(path, 'r');
  const head = Buffer.alloc(512);
  const { bytesRead } = await file.read(head, 0, head.length, 0).finally(() => file.close());
  const text = head.subarray(0, bytesRead).toString('latin1');
  if (!text.startsWith(signature)) return;
  const size = /^size (\d+)$/m.exec(text)?.[1] ?? 'unknown';
  const oid = /^oid (\S+)$/m.exec(text)?.[1] ?? 'unknown';
  throw new DataError('a Git LFS pointer stands in place of the file', {
    where,
    expected: `the object ${oid} of ${size} bytes`,
    found: `the pointer of ${bytesRead} bytes`,
    remedy: 'Fetch the object itself (git lfs pull, or the media address of the repository).',
  });
}
