// A deterministic language model without weights: each next-token distribution is a function of every id and picture before it.
// Any shift, loss or swap of a token or picture changes all numbers behind it, which is what tests of alignment need.

import { createRandom } from '../../../src/random.js';
import type { Engine, EngineInfo, Generation, Sampling, TokenContext, TokenLogprob } from '../../../src/types.js';

export const HASH_ENGINE_INFO: EngineInfo = {
  engine: 'hash',
  version: '1',
  model: 'hash',
  weights: 'default',
  vocabularySize: 512,
  contextLength: 4096,
  geometry: { patchSize: 16, mergeSize: 2, minPixels: 4096, maxPixels: 65536 },
};

/** `msPerToken` slows generation down, for what must be interrupted. */
export function createHashEngine(seed = 1, msPerToken = 0, info: EngineInfo = HASH_ENGINE_INFO): Engine {
  const logprobs = (state: number): Float64Array => {
    const logits = Float64Array.from({ length: info.vocabularySize }, (_, id) => (mix(mix(state, seed), id) / 2 ** 32) * 6);
    const logSum = Math.log(logits.reduce((sum, logit) => sum + Math.exp(logit), 0));
    return logits.map((logit) => logit - logSum);
  };
  const walk = (state: number, ids: readonly number[]): TokenLogprob[] => {
    let at = state;
    return ids.map((id) => {
      const logprob = logprobs(at)[id] ?? Number.NaN;
      at = mix(at, id);
      return { id, logprob };
    });
  };
  const usage = (context: TokenContext) => ({
    promptTokens: context.length,
    cachedTokens: 0,
    computedTokens: context.length,
    imagesEncoded: 0,
  });
  return {
    describe: async () => info,
    prefill: async (context) => usage(context),
    score: async (context, continuations) => {
      const state = stateOf(context);
      return { rows: continuations.map((ids) => walk(state, ids)), usage: usage(context) };
    },
    async generate(context, sampling, options = {}): Promise<Generation> {
      const random = createRandom(sampling.seed);
      const tokens: TokenLogprob[] = [];
      let state = stateOf(context);
      while (tokens.length < sampling.maxNewTokens) {
        options.signal?.throwIfAborted();
        const row = logprobs(state);
        const id = draw(row, sampling, random);
        tokens.push({ id, logprob: row[id] as number });
        options.onToken?.(tokens.at(-1) as TokenLogprob);
        state = mix(state, id);
        if (sampling.stopIds.includes(id)) return { tokens, finishReason: 'stop', usage: usage(context) };
        await new Promise((resolve) => (msPerToken === 0 ? setImmediate(resolve) : setTimeout(resolve, msPerToken)));
      }
      return { tokens, finishReason: 'length', usage: usage(context) };
    },
    release: async () => undefined,
    close: async () => undefined,
  };
}

function draw(row: Float64Array, { temperature, bannedIds }: Sampling, random: () => number): number {
  const allowed = row.map((logprob, id) => (bannedIds.includes(id) ? -Infinity : logprob));
  if (temperature === 0) return allowed.indexOf(Math.max(...allowed));
  const weights = allowed.map((logprob) => Math.exp(logprob / temperature));
  let left = random() * weights.reduce((sum, weight) => sum + weight, 0);
  return weights.findIndex((weight) => {
    left -= weight;
    return left < 0;
  });
}

function stateOf(context: TokenContext): number {
  const pictures = context.images.reduce((state, image) => mix(state, Number.parseInt(image.sha256.slice(0, 8), 16)), 7);
  return context.ids.reduce(mix, pictures);
}

function mix(state: number, value: number): number {
  let z = (Math.imul(state ^ (value + 0x9e3779b9), 0x85ebca6b) ^ (state >>> 13)) >>> 0;
  z = Math.imul(z ^ (z >>> 16), 0xc2b2ae35) >>> 0;
  return (z ^ (z >>> 15)) >>> 0;
}
