// What the machine itself allows in the harness benchmark: requests of the same size, from a client that only posts
// ready buffers and parses the answers.
import { performance } from 'node:perf_hooks';
import { Pool } from 'undici';
import { type Body, batchBody, singleBody } from '../../src/engines/sglang/body.js';
import { NO_NEW_TOKENS, samplingParameters } from '../../src/engines/sglang/sampling.js';
import type { Sampling } from '../../src/types.js';

export interface BareRequests {
  readonly url: string;
  /** Ids of a history, and of the candidates that follow it. */
  readonly history: readonly number[];
  readonly candidates: readonly (readonly number[])[];
  /** JSON strings for `image_data`, and the positions that the pictures take in all. */
  readonly images: readonly Uint8Array[];
  readonly imagePositions: number;
  readonly sampling: Sampling;
}

/** Turns per second of `inFlight` loops over prefill, scoring and action. */
export async function bareThroughput(requests: BareRequests, inFlight: number, turns: number): Promise<number> {
  const pool = new Pool(requests.url, { connections: 128, pipelining: 1 });
  const bodies = turnBodies(requests).map(({ pieces }) => Buffer.concat(pieces));
  const headers = { 'content-type': 'application/json' };
  let left = turns;
  const loop = async (): Promise<void> => {
    while (left-- > 0) {
      for (const body of bodies) {
        const reply = await pool.request({ path: '/generate', method: 'POST', body, headers });
        await reply.body.json();
      }
    }
  };
  try {
    const started = performance.now();
    await Promise.all(Array.from({ length: inFlight }, loop));
    return turns / ((performance.now() - started) / 1000);
  } finally {
    await pool.destroy();
  }
}

function turnBodies({ history, candidates, images, imagePositions, sampling }: BareRequests): Body[] {
  const ids = [Buffer.from(history.join(','))];
  const fields = { rid: 'ssr-000000000000-000000000-1', extra_key: 'bench', return_logprob: true };
  const scored = {
    ...fields,
    sampling_params: NO_NEW_TOKENS,
    logprob_start_len: history.length + imagePositions - images.length - 1,
  };
  return [
    singleBody({ ids, images }, { ...fields, return_logprob: false, sampling_params: NO_NEW_TOKENS }),
    batchBody(
      candidates.map((candidate) => [...ids, Buffer.from(`,${candidate.join(',')}`)]),
      images,
      scored,
    ),
    singleBody({ ids, images }, { ...fields, sampling_params: samplingParameters(sampling) }),
  ];
}
