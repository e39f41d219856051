// A way to reason by its name: which reasoner, which prompt, and whether the action follows a thought that the model closes.
import { UsageError } from '../../errors.js';
import type { Candidate, Dialect, Engine, Reasoner, Tokenizer } from '../../types.js';
import { afterWrittenThought } from '../dialects/written.js';
import { autoregressiveReasoner } from './autoregressive.js';
import { withFallback } from './fallback.js';
import { indexCandidates, indexReasoner } from './index-only.js';
import { noReasoner } from './none.js';
import { likeliestOpening, type OpeningSource, openEveryTurn, openFirstTurn } from './opening.js';
import { firstDivergent, lengthNormalised, priorCorrected, priorLogprobs, type Scorer } from './scorers.js';
import { selectionReasoner } from './selection.js';
import { thoughtTags } from './thought.js';
import { type WrittenOptions, writtenReasoner } from './written.js';

/** `logprob-prefill` is a surrogate of this project's; `probe-prefill` is the published way, with a decision from outside. */
export const reasonings = [
  'selection',
  'index',
  'autoregressive',
  'freeform',
  'chain-of-draft',
  'sketch-of-thought',
  'probe-prefill',
  'logprob-prefill',
  'none',
] as const;
export type ReasoningName = (typeof reasonings)[number];

/** length: K^-alpha times the sum; the others are described in scorers.ts. */
export const scorers = ['length', 'first-divergent', 'prior-corrected'] as const;
export type ScorerName = (typeof scorers)[number];

export const sketches = ['conceptual-chaining', 'chunked-symbolism', 'expert-lexicons'] as const;
export type SketchName = (typeof sketches)[number];

export interface ReasoningSettings {
  readonly reasoning: ReasoningName;
  readonly scorer: ScorerName;
  readonly alpha: number;
  readonly tau: number;
  /** Most tokens of a written thought. */
  readonly maxThoughtTokens: number;
  /** First words per question: needed by `probe-prefill`, decides the sketch where none is fixed. */
  readonly openings?: OpeningSource;
  /** The texts that `logprob-prefill` chooses among. */
  readonly openingTexts?: readonly string[];
  readonly sketch?: SketchName;
  /** Takes the turns in which the best candidate leads by less than the margin, in nats. */
  readonly fallback?: { readonly reasoning: ReasoningName; readonly margin: number };
  /** Lets a checkpoint act without a thought. */
  readonly thoughtOptional?: boolean;
}

export interface ReasoningParts {
  readonly engine: Engine;
  readonly tokenizer: Tokenizer;
  readonly dialect: Dialect;
  readonly library: readonly Candidate[];
  readonly systemIds: readonly number[];
}

export interface CreatedReasoning {
  readonly reasoner: Reasoner;
  /** The dialect to parse actions with. */
  readonly dialect: Dialect;
}

/** Names of the prompt files, in configs/prompts, that a way to reason is asked with: the first leads, the second has the tools. */
export function promptFiles(reasoning: ReasoningName): readonly string[] {
  if (reasoning === 'selection' || reasoning === 'index') return ['ssr.txt'];
  const own = reasoning === 'probe-prefill' || reasoning === 'logprob-prefill' ? 'freeform' : reasoning;
  return [`reasoning-${own}.txt`, 'reasoning-base.txt'];
}

/** Builds a reasoner; the prior of `prior-corrected` is scored now, so that no turn's time holds it. Throws UsageError. */
export async function createReasoning(settings: ReasoningSettings, parts: ReasoningParts): Promise<CreatedReasoning> {
  const primary = await reasonerOf(settings, parts);
  const { fallback } = settings;
  if (fallback === undefined) return { reasoner: primary, dialect: dialectOf([settings.reasoning], parts) };
  if (!chooses(settings.reasoning) || chooses(fallback.reasoning)) {
    throw new UsageError('no such fallback', {
      expected: 'from selection or index to a way that writes',
      found: `from ${settings.reasoning} to ${fallback.reasoning}`,
    });
  }
  const secondary = await reasonerOf({ ...settings, reasoning: fallback.reasoning }, parts);
  return {
    reasoner: withFallback(primary, secondary, { margin: fallback.margin }),
    dialect: dialectOf([settings.reasoning, fallback.reasoning], parts),
  };
}

async function reasonerOf(settings: ReasoningSettings, parts: ReasoningParts): Promise<Reasoner> {
  const { reasoning } = settings;
  const { engine, library, tokenizer } = parts;
  const written = writtenOptions(settings, parts);
  switch (reasoning) {
    case 'selection':
      return selectionReasoner(engine, library, { ...settings, scorer: await scorerOf(settings, parts, library) });
    case 'index': {
      const numbers = indexCandidates(library, parts.dialect, tokenizer);
      return indexReasoner(engine, library, numbers, { ...settings, scorer: await scorerOf(settings, parts, numbers) });
    }
    case 'autoregressive':
      return autoregressiveReasoner(engine, { ...written, library });
    case 'freeform':
    case 'chain-of-draft':
      return writtenReasoner(reasoning, engine, written);
    case 'sketch-of-thought':
      return writtenReasoner(reasoning, engine, { ...written, opening: sketchOpening(settings, parts) });
    case 'probe-prefill':
      return writtenReasoner(reasoning, engine, {
        ...written,
        opening: openFirstTurn(required(settings.openings, 'probe-prefill', 'a table or an endpoint'), tokenizer, written.tags),
      });
    case 'logprob-prefill': {
      const texts = required(settings.openingTexts, 'logprob-prefill', 'texts to choose among');
      return writtenReasoner(reasoning, engine, {
        ...written,
        opening: likeliestOpening(engine, texts, tokenizer, written.tags),
      });
    }
    case 'none':
      return noReasoner();
  }
}

function writtenOptions({ maxThoughtTokens, thoughtOptional }: ReasoningSettings, parts: ReasoningParts): WrittenOptions {
  const { tokenizer, dialect } = parts;
  return {
    tokenizer,
    tags: thoughtTags(dialect),
    maxTokens: maxThoughtTokens,
    ...(thoughtOptional !== undefined && { optional: thoughtOptional }),
  };
}

async function scorerOf(
  { scorer, alpha }: ReasoningSettings,
  { engine, tokenizer, systemIds }: ReasoningParts,
  scored: readonly Candidate[],
): Promise<Scorer> {
  switch (scorer) {
    case 'length':
      return lengthNormalised(alpha);
    case 'first-divergent':
      return firstDivergent(scored);
    case 'prior-corrected': {
      // The model is about to speak, and nobody has asked anything.
      const ids = [...systemIds, ...tokenizer.encode('<|im_start|>assistant\n')];
      const context = { trajectory: 'prior', ids, images: [], length: ids.length };
      return priorCorrected(await priorLogprobs(engine, context, scored), alpha);
    }
  }
}

function sketchOpening({ sketch, openings }: ReasoningSettings, { tokenizer, dialect }: ReasoningParts) {
  const fixed: OpeningSource | undefined = sketch && (async () => `[${sketch.replaceAll('-', ' ')}] `);
  return openEveryTurn(
    required(fixed ?? openings, 'sketch-of-thought', 'a fixed sketch or a router'),
    tokenizer,
    thoughtTags(dialect),
  );
}

function dialectOf(names: readonly ReasoningName[], { dialect }: ReasoningParts): Dialect {
  return names.every((name) => chooses(name) || name === 'none') ? dialect : afterWrittenThought(dialect);
}

function chooses(reasoning: ReasoningName): boolean {
  return reasoning === 'selection' || reasoning === 'index';
}

function required<T>(value: T | undefined, reasoning: ReasoningName, what: string): T {
  if (value === undefined) throw new UsageError(`${reasoning} needs ${what}`);
  return value;
}
