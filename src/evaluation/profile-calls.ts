// Beneath the phases: when a generation's first token comes and how fast the others follow, and what an engine's own server says.
import type { Engine, TokenLogprob } from '../types.js';
import { type Profile, profileOf } from './profile-quantiles.js';
import type { Clock } from './stopwatch.js';

/** One generation: milliseconds to its first token, and from there to its last. */
export interface TimedGeneration {
  readonly firstTokenMs: number;
  readonly decodeMs: number;
  readonly tokens: number;
}

/** The same engine, each generation streamed and timed; an engine that does not stream gives no first token and is not told of. */
export function timedGenerations(engine: Engine, clock: Clock, onGeneration: (timed: TimedGeneration) => void): Engine {
  return {
    describe: () => engine.describe(),
    prefill: (context, options) => engine.prefill(context, options),
    score: (context, continuations, options) => engine.score(context, continuations, options),
    release: (trajectory) => engine.release(trajectory),
    close: () => engine.close(),
    async generate(context, sampling, options) {
      const started = clock();
      let [first, last]: [number | null, number] = [null, started];
      const onToken = (token: TokenLogprob): void => {
        last = clock();
        first ??= last;
        options?.onToken?.(token);
      };
      const generation = await engine.generate(context, sampling, { ...options, onToken });
      if (first !== null) {
        onGeneration({ firstTokenMs: first - started, decodeMs: last - first, tokens: generation.tokens.length });
      }
      return generation;
    },
  };
}

export interface GenerationProfile {
  readonly firstTokenMs: Profile;
  /** Between two tokens, per generation of at least two. */
  readonly perTokenMs: Profile;
}

export function profileGenerations(generations: readonly TimedGeneration[]): GenerationProfile {
  const several = generations.filter(({ tokens }) => tokens > 1);
  return {
    firstTokenMs: profileOf(generations.map(({ firstTokenMs }) => firstTokenMs)),
    perTokenMs: profileOf(several.map(({ decodeMs, tokens }) => decodeMs / (tokens - 1))),
  };
}

/** A call to a server, as far as its times go. */
export interface TimedCall {
  readonly verb: string;
  readonly totalMs: number;
  readonly queueMs: number;
  readonly retryMs: number;
  /** Null where the server does not say. */
  readonly serverMs: number | null;
  readonly forwardMs: number | null;
}

export interface CallProfile {
  readonly verb: string;
  /** At the client, without its own queue and without failed attempts. */
  readonly clientMs: Profile;
  /** At the server, from receipt to the end. */
  readonly serverMs: Profile;
  /** In the model. */
  readonly forwardMs: Profile;
}

/** One profile per verb, in the order in which the verbs first came. */
export function profileCalls(calls: readonly TimedCall[]): CallProfile[] {
  const verbs = [...new Set(calls.map(({ verb }) => verb))];
  return verbs.map((verb) => {
    const own = calls.filter((call) => call.verb === verb);
    return {
      verb,
      clientMs: profileOf(own.map(({ totalMs, queueMs, retryMs }) => totalMs - queueMs - retryMs)),
      serverMs: profileOf(own.flatMap(({ serverMs }) => serverMs ?? [])),
      forwardMs: profileOf(own.flatMap(({ forwardMs }) => forwardMs ?? [])),
    };
  });
}
