// The bytes of one file, gone on with after every interruption until the file is whole.
import { open, readFile, rm, writeFile } from 'node:fs/promises';
import { DataError } from '../../errors.js';
import { sizeOf } from './cache.js';
import type { HubOptions } from './options.js';
import type { Repository } from './repository.js';
import { ConnectionFault, explained, faultMessage, headerOf, hubRequest, pause, type Response } from './request.js';

export interface Transfer {
  readonly repository: Repository;
  readonly url: string;
  /** Grows in place; what is there from an earlier call is gone on with. */
  readonly partial: string;
  readonly sizeBytes: number | null;
}

/**
 * Gives back whether the file was put together from several tries. Throws DataError when so many tries in a row bring nothing that
 * the server must be down; what has arrived stays for the next call.
 */
export async function transfer(transfer: Transfer, options: HubOptions): Promise<{ readonly pieced: boolean }> {
  let pieced = false;
  for (let failures = 0; ; ) {
    const before = (await sizeOf(transfer.partial)) ?? 0;
    pieced ||= before > 0;
    if (transfer.sizeBytes !== null && before === transfer.sizeBytes && before > 0) return { pieced };
    try {
      await receive(transfer, before, options);
      return { pieced };
    } catch (error) {
      if (!(error instanceof ConnectionFault)) throw error;
      const after = (await sizeOf(transfer.partial)) ?? 0;
      failures = after > before ? 1 : failures + 1;
      if (failures >= options.attempts) throw interrupted(transfer, after, failures, error);
      await pause(failures, error, options);
    }
  }
}

async function receive(transfer: Transfer, have: number, options: HubOptions): Promise<void> {
  // A file longer than it should be, or of unknown length, cannot be gone on with.
  const from = transfer.sizeBytes === null || have > transfer.sizeBytes ? 0 : have;
  const validator = from > 0 ? await readFile(validatorPath(transfer), 'utf8').catch(() => '') : '';
  const headers = from === 0 ? {} : { range: `bytes=${from}-`, ...(validator && { 'if-range': validator }) };
  const answer = await hubRequest({ method: 'GET', url: transfer.url, headers, followToOtherHosts: true }, options);
  if (answer.statusCode === 416) {
    await answer.body.dump();
    await discardPartial(transfer);
    throw new ConnectionFault('the server cannot go on from here (416); starting over', 0);
  }
  const response = await explained(answer, transfer.url, transfer.repository, options);
  if (response === null) throw new DataError('no such file', { where: transfer.url, found: 'status 404' });
  await rememberValidator(transfer, response);
  await write(response, transfer, startOf(response, from), options);
}

/** Where the body begins: a server that ignores the range, or whose file has changed, sends everything again. */
function startOf(response: Response, asked: number): number {
  if (response.statusCode !== 206) return 0;
  const start = /^bytes (\d+)-/.exec(headerOf(response, 'content-range') ?? '')?.[1];
  if (Number(start) === asked) return asked;
  response.body.destroy();
  throw new ConnectionFault(`asked for bytes from ${asked}, got ${headerOf(response, 'content-range')}`);
}

async function write(
  response: Response,
  { partial, sizeBytes, url }: Transfer,
  start: number,
  options: HubOptions,
): Promise<void> {
  const file = await open(partial, start === 0 ? 'w' : 'r+');
  const startedMs = performance.now();
  let position = start;
  try {
    for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
      await file.write(chunk, 0, chunk.length, position);
      position += chunk.length;
      report(position, start, performance.now() - startedMs);
    }
  } catch (error) {
    options.signal?.throwIfAborted();
    if ((error as NodeJS.ErrnoException).code === 'ENOSPC') {
      throw new DataError('the disk is full', { where: partial, found: `${position} bytes written`, cause: error });
    }
    throw new ConnectionFault(faultMessage(error), null, error);
  } finally {
    await file.close();
  }
  // A body that is complete but too short is another file (an LFS pointer, a page): not a matter of trying again.
  const length = headerOf(response, 'content-length');
  const end = length === null ? sizeBytes : start + Number(length);
  if (end !== null && position < end) throw new ConnectionFault(`the connection ended at ${position} of ${end} bytes`);

  function report(received: number, from: number, elapsedMs: number): void {
    const bytesPerSecond = elapsedMs > 0 ? ((received - from) / elapsedMs) * 1000 : 0;
    const secondsLeft = sizeBytes === null || bytesPerSecond === 0 ? null : (sizeBytes - received) / bytesPerSecond;
    options.onProgress?.({ file: url, receivedBytes: received, totalBytes: sizeBytes, bytesPerSecond, secondsLeft });
  }
}

/** The entity tag of the host that delivered the bytes; a weak one may not be used with If-Range. */
async function rememberValidator(transfer: Transfer, response: Response): Promise<void> {
  const etag = headerOf(response, 'etag');
  if (etag?.startsWith('"')) await writeFile(validatorPath(transfer), etag);
  else if (response.statusCode !== 206) await rm(validatorPath(transfer), { force: true });
}

export async function discardPartial(transfer: Transfer): Promise<void> {
  await rm(transfer.partial, { force: true });
  await rm(validatorPath(transfer), { force: true });
}

export function validatorPath({ partial }: Transfer): string {
  return `${partial}.etag`;
}

function interrupted({ url, sizeBytes }: Transfer, have: number, failures: number, fault: ConnectionFault): DataError {
  return new DataError('the download was interrupted', {
    where: url,
    found: `${have} of ${sizeBytes ?? 'unknown'} bytes, then ${failures} tries without progress: ${fault.message}`,
    remedy: 'Run the command again: it goes on where it stopped.',
    cause: fault,
  });
}
