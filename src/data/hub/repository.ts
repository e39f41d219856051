// Repositories that data sets come from, and the addresses of their files.
import type { HubOptions } from './options.js';

export interface HubRepository {
  readonly host: 'huggingface';
  /** owner/name of a data set. */
  readonly id: string;
  /** A full commit hash pins the files; a branch is resolved to a commit at the first download, which is then kept. */
  readonly revision: string;
}

export interface GithubRepository {
  readonly host: 'github';
  readonly id: string;
  readonly revision: string;
}

export type Repository = HubRepository | GithubRepository;

/** What is known of a file before it is downloaded. */
export interface FilePin {
  readonly sha256?: string;
  readonly sizeBytes?: number;
}

export function isCommit(revision: string): boolean {
  return /^[0-9a-f]{40}$/.test(revision);
}

export function describeRepository(repository: Repository): string {
  return `${repository.host === 'github' ? 'github:' : ''}${repository.id}`;
}

/** The page on which a person accepts the terms of a data set. */
export function pageUrl(repository: Repository, options: HubOptions): string {
  return repository.host === 'github' ? `https://github.com/${repository.id}` : `${options.endpoint}/datasets/${repository.id}`;
}

export function fileUrl(repository: Repository, revision: string, path: string, options: HubOptions): string {
  const name = path.split('/').map(encodeURIComponent).join('/');
  return repository.host === 'github'
    ? `${options.githubMedia}/${repository.id}/${encodeURIComponent(revision)}/${name}`
    : `${options.endpoint}/datasets/${repository.id}/resolve/${encodeURIComponent(revision)}/${name}`;
}

export function revisionUrl(repository: HubRepository, options: HubOptions): string {
  return `${options.endpoint}/api/datasets/${repository.id}/revision/${encodeURIComponent(repository.revision)}`;
}

export function treeUrl(repository: HubRepository, commit: string, options: HubOptions): string {
  return `${options.endpoint}/api/datasets/${repository.id}/tree/${commit}?recursive=true`;
}
