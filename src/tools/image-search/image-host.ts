// Reverse-image services fetch the picture themselves, so it needs a public address: an HTTP PUT target or the user's own upload command.
//   https://host/folder/{name}?signature…            PUT there; the address without its query is the public one
//   https://host/upload/{name} https://cdn/{name}    PUT to the first, public under the second
//   uploader --file {file} --name {name}             run without a shell; the last address it prints is the public one
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ExecaError, execa } from 'execa';
import { ToolError, UsageError } from '../../errors.js';
import type { Image } from '../../types.js';
import { type HttpClient, requireSuccess } from '../http/client.js';
import type { Guard } from '../http/guard.js';
import { parseUrl } from '../http/url.js';
import type { Redactor } from '../redaction.js';

export interface ImageHost {
  /** The picture's public address. */
  upload(image: Image, signal?: AbortSignal): Promise<URL>;
}

export interface ImageHostOptions {
  readonly http: HttpClient;
  readonly redactor: Redactor;
  readonly guard: Guard;
}

const EXTENSIONS: Readonly<Record<string, string>> = {
  'image/jpeg': 'jpg',
  'image/png': 'png',
  'image/webp': 'webp',
  'image/gif': 'gif',
};

const COMMAND_TIMEOUT_MS = 60_000;

/** `template` as in the file's head. Throws UsageError for one that cannot work. */
export function createImageHost(template: string, options: ImageHostOptions): ImageHost {
  const words = splitWords(template);
  const [first = ''] = words;
  const place = /^https?:/.test(first) ? putTarget(words, options) : uploadCommand(words, options);
  return {
    async upload(image, signal) {
      const name = `${image.sha256}.${EXTENSIONS[image.mediaType] ?? 'bin'}`;
      const address = await place(image, name, signal);
      // A private address would cost a paid search that cannot see the picture.
      options.guard.check(address);
      return address;
    },
  };
}

/** Secrets that an image host's template may carry: long values in its query strings (short ones are dates and names). */
export function secretsOf(template: string): string[] {
  return splitWords(template)
    .flatMap((word) => [...(parseUrl(word)?.searchParams.values() ?? [])])
    .filter((value) => value.length >= 16);
}

type Place = (image: Image, name: string, signal?: AbortSignal) => Promise<URL>;

function putTarget([target = '', publicAddress]: readonly string[], { http, redactor }: ImageHostOptions): Place {
  if (!target.includes('{name}') || !parseUrl(target)) {
    throw new UsageError('the image host cannot tell pictures apart', {
      where: '--image-host',
      expected: 'an address with {name}',
    });
  }
  return async (image, name, signal) => {
    const url = new URL(target.replaceAll('{name}', name));
    const reply = await http.send(
      {
        provider: 'image-host',
        url,
        method: 'PUT',
        headers: { 'content-type': image.mediaType },
        body: image.bytes,
        origin: 'configured',
        maxBytes: 1_000_000,
        timeoutMs: 60_000,
      },
      signal,
    );
    requireSuccess(reply, 'image-host', redactor);
    if (publicAddress !== undefined) return new URL(publicAddress.replaceAll('{name}', name));
    url.search = '';
    return url;
  };
}

function uploadCommand(words: readonly string[], { redactor }: ImageHostOptions): Place {
  if (words.length === 0 || !words.some((word) => word.includes('{file}'))) {
    throw new UsageError('the upload command has no place for the picture', {
      where: '--image-host',
      expected: 'a command with {file}, or an http(s) address to PUT to',
    });
  }
  return async (image, name, signal) => {
    const folder = await mkdtemp(join(tmpdir(), 'ssr-upload-'));
    try {
      const file = join(folder, name);
      await writeFile(file, image.bytes);
      const [command = '', ...rest] = words.map((word) => word.replaceAll('{file}', file).replaceAll('{name}', name));
      return lastAddress(await run(command, rest, redactor, signal), command);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  };
}

async function run(command: string, words: readonly string[], redactor: Redactor, signal?: AbortSignal): Promise<string> {
  try {
    const { stdout } = await execa(command, words, {
      timeout: COMMAND_TIMEOUT_MS,
      maxBuffer: 1_000_000,
      stdin: 'ignore',
      ...(signal && { cancelSignal: signal }),
    });
    return stdout;
  } catch (error) {
    signal?.throwIfAborted();
    // The command line may carry keys, so only the command's own name is told.
    const found =
      error instanceof ExecaError ? `${error.code ?? `exit code ${error.exitCode}`} ${error.stderr ?? ''}` : String(error);
    throw new ToolError('the upload command failed', { where: command, found: redactor.all(found.slice(0, 300)).trim() });
  }
}

function lastAddress(output: string, command: string): URL {
  const addresses = output.match(/https?:\/\/[^\s"'<>]+/g) ?? [];
  const address = parseUrl(addresses.at(-1) ?? '');
  if (address) return address;
  throw new ToolError('the upload command printed no address', { where: command, expected: 'the public address on its output' });
}

/** Words as a shell would split them, with quotes but without expansions. */
function splitWords(template: string): string[] {
  return [...template.matchAll(/(?:"[^"]*"|'[^']*'|[^\s"'])+/g)].map(([word]) => word.replace(/"([^"]*)"|'([^']*)'/g, '$1$2'));
}
