// What a repository has: the commit behind a revision, one file's identity, the list of all files.
import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { DataError } from '../../errors.js';
import { readRef, repositoryCache, writeWhole } from './cache.js';
import type { HubOptions } from './options.js';
import { type FilePin, fileUrl, type HubRepository, isCommit, type Repository, revisionUrl, treeUrl } from './repository.js';
import { explained, headerOf, hubRequest, persistently, type Response } from './request.js';

export interface RemoteFile {
  readonly path: string;
  /** SHA-256 of an LFS object, Git's hash of a small file. */
  readonly etag: string;
  readonly sizeBytes: number | null;
}

const revisionSchema = z.object({ sha: z.string() });
const treeSchema = z.array(
  z.object({
    type: z.string(),
    path: z.string(),
    oid: z.string(),
    size: z.number().optional(),
    lfs: z.object({ oid: z.string(), size: z.number() }).optional(),
  }),
);
const savedTreeSchema = z.array(z.object({ path: z.string(), etag: z.string(), sizeBytes: z.number().nullable() }));

/** The commit that a repository is read at: the pinned one, the one of an earlier download, or the newest of the branch. */
export async function resolveCommit(repository: Repository, options: HubOptions): Promise<string> {
  if (repository.host === 'github' || isCommit(repository.revision)) return repository.revision;
  const cache = repositoryCache(repository, options);
  const known = await readRef(cache, repository.revision);
  if (known !== null) return known;
  const { sha } = await readJson(repository, revisionUrl(repository, options), revisionSchema, options);
  await writeWhole(cache.ref(repository.revision), sha);
  return sha;
}

/** All files of a commit; asked once, since a commit does not change. */
export async function listFiles(repository: HubRepository, commit: string, options: HubOptions): Promise<readonly RemoteFile[]> {
  const saved = repositoryCache(repository, options).tree(commit);
  const text = await readFile(saved, 'utf8').catch(() => null);
  if (text !== null) return savedTreeSchema.parse(JSON.parse(text));
  const files: RemoteFile[] = [];
  let url: string | null = treeUrl(repository, commit, options);
  while (url !== null) {
    const page: TreePage = await readTreePage(repository, url, options);
    files.push(...page.files);
    url = page.next;
  }
  await writeWhole(saved, JSON.stringify(files));
  return files;
}

/** Size and identity of one file, or null where the repository has no such file. A pin is enough by itself. */
export async function describeFile(
  repository: Repository,
  commit: string,
  path: string,
  pin: FilePin,
  options: HubOptions,
): Promise<RemoteFile | null> {
  if (pin.sha256 !== undefined && pin.sizeBytes !== undefined) return { path, etag: pin.sha256, sizeBytes: pin.sizeBytes };
  const url = fileUrl(repository, commit, path, options);
  return persistently(url, options, async () => {
    const head = await hubRequest({ method: 'HEAD', url, followToOtherHosts: false }, options);
    const response = await explained(head, url, repository, options);
    if (response === null) return null;
    await response.body.dump();
    const etag = pin.sha256 ?? bareEtag(headerOf(response, 'x-linked-etag') ?? headerOf(response, 'etag'));
    if (etag === null) throw new DataError('the server does not identify the file', { where: url, expected: 'an ETag' });
    const length =
      headerOf(response, 'x-linked-size') ?? (response.statusCode < 300 ? headerOf(response, 'content-length') : null);
    return { path, etag, sizeBytes: pin.sizeBytes ?? (length === null ? null : Number(length)) };
  });
}

interface TreePage {
  readonly files: readonly RemoteFile[];
  readonly next: string | null;
}

async function readTreePage(repository: HubRepository, url: string, options: HubOptions): Promise<TreePage> {
  let next: string | null = null;
  const entries = await readJson(repository, url, treeSchema, options, (response) => {
    next = nextPage(headerOf(response, 'link'), options.endpoint);
  });
  const files = entries
    .filter(({ type }) => type === 'file')
    .map(({ path, oid, size, lfs }) => ({ path, etag: lfs?.oid ?? oid, sizeBytes: lfs?.size ?? size ?? null }));
  return { files, next };
}

/** The next page, asked of our endpoint: mirrors pass on links that lead back to the original host. */
function nextPage(link: string | null, endpoint: string): string | null {
  const target = /<([^>]+)>\s*;\s*rel="?next"?/.exec(link ?? '')?.[1];
  if (target === undefined) return null;
  const { pathname, search } = new URL(target, endpoint);
  return new URL(endpoint).origin + pathname + search;
}

async function readJson<T>(
  repository: Repository,
  url: string,
  schema: z.ZodType<T>,
  options: HubOptions,
  onResponse?: (response: Response) => void,
): Promise<T> {
  const value = await persistently(url, options, async () => {
    const response = await explained(
      await hubRequest({ method: 'GET', url, followToOtherHosts: true }, options),
      url,
      repository,
      options,
    );
    if (response === null) throw new DataError('no such repository or revision', { where: url, found: 'status 404' });
    onResponse?.(response);
    return response.body.json().catch((cause: unknown) => {
      throw new DataError('the answer is no JSON', { where: url, cause, remedy: 'See whether HF_ENDPOINT names a hub.' });
    });
  });
  const parsed = schema.safeParse(value);
  if (!parsed.success) throw new DataError('an unexpected answer', { where: url, found: z.prettifyError(parsed.error) });
  return parsed.data;
}

/** Without quotes and weakness mark, and fit to be a file's name. */
function bareEtag(etag: string | null): string | null {
  const bare = etag?.replace(/^W\//, '').replaceAll('"', '') ?? '';
  return /^[\w.-]+$/.test(bare) ? bare : null;
}
