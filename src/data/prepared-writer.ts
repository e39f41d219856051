// Writes a prepared folder under a temporary name and gives it its own name at the end, so that nobody ever reads half of one.
import { createHash } from 'node:crypto';
import { type FileHandle, mkdir, open, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { PreparedManifest, PreparedQuestion } from './prepared.js';

export interface PreparedWriter {
  readonly imageFiles: number;
  readonly imageBytes: number;
  /** Written once, however often it is used. */
  addImage(name: string, bytes: Uint8Array): Promise<void>;
  addQuestion(question: PreparedQuestion): Promise<void>;
  /** Replaces what was there before. */
  finish(manifest: (counted: Counted) => PreparedManifest): Promise<PreparedManifest>;
  discard(): Promise<void>;
}

export interface Counted {
  readonly questions: number;
  readonly types: Record<string, number>;
  readonly flags: Record<string, number>;
  readonly images: { readonly files: number; readonly bytes: number };
  readonly indexSha256: string;
}

export async function createPreparedWriter(folder: string): Promise<PreparedWriter> {
  const work = `${folder}.preparing`;
  await rm(work, { recursive: true, force: true });
  await mkdir(join(work, 'images'), { recursive: true });
  const index: FileHandle = await open(join(work, 'index.jsonl'), 'w');
  const hash = createHash('sha256');
  const written = new Set<string>();
  const types: Record<string, number> = {};
  const flags: Record<string, number> = {};
  let questions = 0;
  let bytesWritten = 0;
  return {
    get imageFiles() {
      return written.size;
    },
    get imageBytes() {
      return bytesWritten;
    },
    async addImage(name, bytes) {
      if (written.has(name)) return;
      written.add(name);
      bytesWritten += bytes.length;
      await writeFile(join(work, name), bytes);
    },
    async addQuestion(question) {
      const line = `${JSON.stringify(question)}\n`;
      hash.update(line);
      await index.write(line);
      questions += 1;
      count(types, question.type);
      for (const flag of question.flags ?? []) count(flags, flag);
    },
    async finish(manifestOf) {
      await index.sync();
      await index.close();
      const images = { files: written.size, bytes: bytesWritten };
      const manifest = manifestOf({ questions, types, flags, images, indexSha256: hash.digest('hex') });
      await writeFile(join(work, 'manifest.json'), `${JSON.stringify(manifest, null, 2)}\n`);
      await replaceFolder(work, folder);
      return manifest;
    },
    async discard() {
      await index.close().catch(() => undefined);
      await rm(work, { recursive: true, force: true });
    },
  };
}

function count(counts: Record<string, number>, key: string): void {
  counts[key] = (counts[key] ?? 0) + 1;
}

async function replaceFolder(work: string, folder: string): Promise<void> {
  const old = `${folder}.replaced`;
  await rm(old, { recursive: true, force: true });
  await rename(folder, old).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
  });
  await rename(work, folder);
  await rm(old, { recursive: true, force: true });
}
