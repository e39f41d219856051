// Where data sets are downloaded from and where downloads are kept: settings as values, read from an environment that is handed in.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

export interface DownloadProgress {
  readonly file: string;
  readonly receivedBytes: number;
  /** Null where the server does not say. */
  readonly totalBytes: number | null;
  /** Mean rate of this attempt. */
  readonly bytesPerSecond: number;
  readonly secondsLeft: number | null;
}

export interface HubOptions {
  /** Hugging Face or a mirror, without a trailing slash. */
  readonly endpoint: string;
  /** Sent to the endpoint's own host only. */
  readonly token?: string;
  /** Serves the contents of Git LFS objects of GitHub repositories. */
  readonly githubMedia: string;
  /** The Python client's cache: blobs, refs and snapshots per repository. */
  readonly cacheFolder: string;
  /** Same layout, for files that do not come from the hub. */
  readonly githubCacheFolder: string;
  /** A connection that delivers nothing for this long is given up. */
  readonly stallMs: number;
  /** Tries in a row that may bring not a single byte before a download fails. */
  readonly attempts: number;
  /** Pause after the first failed try; doubles, with jitter, up to `retryDelayLimitMs`. */
  readonly retryDelayMs: number;
  readonly retryDelayLimitMs: number;
  readonly onProgress?: (progress: DownloadProgress) => void;
  /** Told once when another process holds the file. */
  readonly onWait?: (file: string) => void;
  readonly signal?: AbortSignal;
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** The settings of the Python client (HF_ENDPOINT, HF_TOKEN or its token file, HF_HUB_CACHE, HF_HOME, XDG_CACHE_HOME). */
export async function hubOptionsFromEnvironment(environment: Environment, homeFolder: string): Promise<HubOptions> {
  const caches = environment.XDG_CACHE_HOME || join(homeFolder, '.cache');
  const hfHome = environment.HF_HOME || join(caches, 'huggingface');
  const token =
    environment.HF_TOKEN ||
    environment.HUGGING_FACE_HUB_TOKEN ||
    (await readToken(environment.HF_TOKEN_PATH || join(hfHome, 'token')));
  return {
    endpoint: (environment.HF_ENDPOINT || 'https://huggingface.co').replace(/\/+$/, ''),
    githubMedia: 'https://media.githubusercontent.com/media',
    cacheFolder: environment.HF_HUB_CACHE || environment.HUGGINGFACE_HUB_CACHE || join(hfHome, 'hub'),
    githubCacheFolder: join(caches, 'ssr', 'github'),
    stallMs: 30_000,
    attempts: 5,
    retryDelayMs: 1_000,
    retryDelayLimitMs: 30_000,
    ...(token && { token: token.trim() }),
  };
}

async function readToken(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch {
    return undefined;
  }
}
