// Sampling parameters, all of them explicit: a server's defaults depend on its version and flags.
import type { Sampling } from '../../types.js';
import type { SamplingParameters } from './protocol.js';

/** Far below any logit, and still finite in 16 bits. */
const BANNED_BIAS = -10_000;

const NEUTRAL = {
  top_p: 1,
  top_k: -1,
  min_p: 0,
  frequency_penalty: 0,
  presence_penalty: 0,
  repetition_penalty: 1,
  n: 1,
  ignore_eos: false,
  skip_special_tokens: false,
} as const;

/** Nothing is generated: prefill and scoring. */
export const NO_NEW_TOKENS: SamplingParameters = { ...NEUTRAL, max_new_tokens: 0, temperature: 0 };

export function samplingParameters(sampling: Sampling): SamplingParameters {
  const { bannedIds, stopIds } = sampling;
  return {
    ...NEUTRAL,
    max_new_tokens: sampling.maxNewTokens,
    temperature: sampling.temperature,
    top_p: sampling.topP,
    top_k: sampling.topK === 0 ? -1 : sampling.topK,
    sampling_seed: sampling.seed,
    ...(stopIds.length > 0 && { stop_token_ids: stopIds }),
    ...(bannedIds.length > 0 && { logit_bias: Object.fromEntries(bannedIds.map((id) => [String(id), BANNED_BIAS])) }),
  };
}
