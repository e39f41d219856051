// How the cost of reasoning grows, measured on an engine directly: selection against the length of the history, the number and the
// length of candidates and the pictures; writing against the number of tokens written. One factor at a time around a base point.

import { imageTokenCount } from '../media/geometry.js';
import { createRandom, deriveSeed } from '../random.js';
import type { Engine, EngineInfo, Image, Sampling, TokenContext, Tokenizer } from '../types.js';
import { fitLinear, type LinearFit } from './profile-linear.js';
import { type Profile, profileOf } from './profile-quantiles.js';
import type { Clock } from './stopwatch.js';

export interface SweepPoint {
  /** Text positions of the history; pictures come on top. */
  readonly historyTokens: number;
  readonly candidates: number;
  readonly candidateTokens: number;
  readonly images: number;
}

export interface SweepOptions {
  readonly base: SweepPoint;
  readonly historyTokens: readonly number[];
  readonly candidates: readonly number[];
  readonly candidateTokens: readonly number[];
  readonly images: readonly number[];
  /** Lengths of written thoughts. */
  readonly writtenTokens: readonly number[];
  /** Measurements per point, after one that does not count. */
  readonly repeats: number;
  readonly seed: number;
}

export interface SelectionMeasurement extends SweepPoint {
  /** Which factor this point belongs to. */
  readonly factor: 'historyTokens' | 'candidates' | 'candidateTokens' | 'images';
  /** Expanded positions of the history. */
  readonly positions: number;
  readonly ms: Profile;
}

export interface WritingMeasurement {
  readonly historyTokens: number;
  readonly writtenTokens: number;
  readonly ms: Profile;
}

export interface Sweep {
  readonly selection: readonly SelectionMeasurement[];
  readonly writing: readonly WritingMeasurement[];
  /** Points that the model's context does not hold. */
  readonly skipped: number;
  /** ms = intercept + slopes . (history positions, scored tokens); null where the points do not determine it. */
  readonly selectionFit: LinearFit | null;
  /** ms = intercept + slopes . (history positions, written tokens). */
  readonly writingFit: LinearFit | null;
  /** Written tokens up to which writing is faster than selecting at the base point; null where writing costs nothing more per token. */
  readonly breakEvenTokens: number | null;
}

export interface SweepParts {
  readonly engine: Engine;
  readonly info: EngineInfo;
  readonly tokenizer: Tokenizer;
  /** Pictures to fill histories with; as many as the sweep's largest number. */
  readonly images: readonly Image[];
  readonly imagePad: string;
  readonly sampling: Sampling;
  readonly clock: Clock;
}

export async function runSweep(parts: SweepParts, options: SweepOptions, signal?: AbortSignal): Promise<Sweep> {
  const points = selectionPoints(options);
  const fitting = points.filter((point) => holds(parts, point, point.candidateTokens));
  const lengths = writingPoints(options);
  const fittingLengths = lengths.filter(({ historyTokens, writtenTokens }) =>
    holds(parts, { ...options.base, historyTokens, images: 0 }, writtenTokens),
  );
  const selection: SelectionMeasurement[] = [];
  for (const point of fitting) selection.push(await measureSelection(parts, point, options, signal));
  const writing: WritingMeasurement[] = [];
  for (const length of fittingLengths) writing.push(await measureWriting(parts, length, options, signal));
  const skipped = points.length - fitting.length + lengths.length - fittingLengths.length;
  return { selection, writing, skipped, ...conclusions(selection, writing, options) };
}

function conclusions(
  selection: readonly SelectionMeasurement[],
  writing: readonly WritingMeasurement[],
  { base }: SweepOptions,
): Pick<Sweep, 'selectionFit' | 'writingFit' | 'breakEvenTokens'> {
  const selectionFit = fitLinear(
    selection.map((point) => [point.positions, point.candidates * point.candidateTokens]),
    selection.map(({ ms }) => ms.p50.value ?? 0),
  );
  const writingFit = fitLinear(
    writing.map(({ historyTokens, writtenTokens }) => [historyTokens, writtenTokens]),
    writing.map(({ ms }) => ms.p50.value ?? 0),
  );
  const [perScoredPosition = 0, perScored = 0] = selectionFit?.slopes ?? [];
  const [perWritingPosition = 0, perWritten = 0] = writingFit?.slopes ?? [];
  const atBase =
    (selectionFit?.intercept ?? 0) + perScoredPosition * base.historyTokens + perScored * base.candidates * base.candidateTokens;
  const fixed = (writingFit?.intercept ?? 0) + perWritingPosition * base.historyTokens;
  const known = selectionFit !== null && writingFit !== null && perWritten > 0;
  return { selectionFit, writingFit, breakEvenTokens: known ? Math.max(0, (atBase - fixed) / perWritten) : null };
}

function selectionPoints(options: SweepOptions): (SweepPoint & { factor: SelectionMeasurement['factor'] })[] {
  const factors = ['historyTokens', 'candidates', 'candidateTokens', 'images'] as const;
  return factors.flatMap((factor) => options[factor].map((value) => ({ ...options.base, [factor]: value, factor })));
}

function writingPoints({ base, historyTokens, writtenTokens }: SweepOptions) {
  const longest = Math.max(...writtenTokens);
  return [
    ...writtenTokens.map((written) => ({ historyTokens: base.historyTokens, writtenTokens: written })),
    ...historyTokens
      .filter((length) => length !== base.historyTokens)
      .map((length) => ({ historyTokens: length, writtenTokens: longest })),
  ];
}

function holds({ info, images }: SweepParts, point: SweepPoint, added: number): boolean {
  return point.historyTokens + imagePositions(images.slice(0, point.images), info) + added <= info.contextLength;
}

async function measureSelection(
  parts: SweepParts,
  point: SweepPoint & { factor: SelectionMeasurement['factor'] },
  { repeats, seed }: SweepOptions,
  signal?: AbortSignal,
): Promise<SelectionMeasurement> {
  const name = JSON.stringify(point);
  const ms: number[] = [];
  let positions = 0;
  for (let repeat = 0; repeat <= repeats; repeat++) {
    const random = createRandom(deriveSeed(seed, name, String(repeat)));
    const context = historyOf(parts, `sweep ${name} ${repeat}`, point, random);
    positions = context.length;
    const candidates = Array.from({ length: point.candidates }, () => textIds(parts, point.candidateTokens, random));
    const elapsed = await timed(parts, context, () => parts.engine.score(context, candidates, signal && { signal }));
    if (repeat > 0) ms.push(elapsed);
  }
  return { ...point, positions, ms: profileOf(ms) };
}

async function measureWriting(
  parts: SweepParts,
  { historyTokens, writtenTokens }: { historyTokens: number; writtenTokens: number },
  { base, repeats, seed }: SweepOptions,
  signal?: AbortSignal,
): Promise<WritingMeasurement> {
  const ms: number[] = [];
  for (let repeat = 0; repeat <= repeats; repeat++) {
    const name = `sweep writing ${historyTokens} ${writtenTokens} ${repeat}`;
    const context = historyOf(parts, name, { ...base, historyTokens, images: 0 }, createRandom(deriveSeed(seed, name)));
    const { sampling, engine } = parts;
    // Nothing ends the thought early: its length is what is being varied.
    const eta = {
      ...sampling,
      maxNewTokens: writtenTokens,
      stopIds: [],
      bannedIds: [...sampling.bannedIds, ...sampling.stopIds],
    };
    const elapsed = await timed(parts, context, () => engine.generate(context, eta, signal && { signal }));
    if (repeat > 0) ms.push(elapsed);
  }
  return { historyTokens, writtenTokens, ms: profileOf(ms) };
}

/** The time of a call behind a history that is already in the cache, in milliseconds. */
async function timed({ engine, clock }: SweepParts, context: TokenContext, run: () => Promise<unknown>): Promise<number> {
  try {
    await engine.prefill(context);
    const started = clock();
    await run();
    return clock() - started;
  } finally {
    await engine.release(context.trajectory);
  }
}

function historyOf(parts: SweepParts, trajectory: string, point: SweepPoint, random: () => number): TokenContext {
  const images = parts.images.slice(0, point.images);
  const pad = parts.tokenizer.idOf(parts.imagePad);
  const ids = [...images.map(() => pad), ...textIds(parts, point.historyTokens, random)];
  return { trajectory, ids, images, length: point.historyTokens + imagePositions(images, parts.info) };
}

/** Ordinary tokens: the ids that plain words have, none of them special. */
function textIds({ tokenizer }: SweepParts, count: number, random: () => number): number[] {
  const words = tokenizer.encode(WORDS);
  return Array.from({ length: count }, () => words[Math.floor(random() * words.length)] as number);
}

const WORDS = 'the city of a small town where people read old books about rivers, roads, houses, gardens and the sea in winter';

function imagePositions(images: readonly Image[], { geometry }: EngineInfo): number {
  return images.reduce((sum, { width, height }) => sum + imageTokenCount(width, height, geometry), 0);
}
