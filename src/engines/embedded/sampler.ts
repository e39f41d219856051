// Chooses the next token from one row of logits: greedy at temperature 0, else from the truncated softmax(logits / T).
import type { Sampling, TokenLogprob } from '../../types.js';

/** Everything of `Sampling` that one draw depends on. */
export type DrawOptions = Pick<Sampling, 'temperature' | 'topP' | 'topK' | 'bannedIds'>;

/** log Σ exp(logit / T) over the whole vocabulary, so that ln p(id) = logit / T - this. */
export type LogNormaliser = (temperature: number) => number;

/**
 * `logprob` is ln softmax(logits / T)[id] over the whole vocabulary (T = 1 when greedy): bans and truncation by topK and topP
 * change what is drawn, not the logged probability, so a trainer can recompute it. Ties go to the lowest id.
 */
export function drawToken(
  logits: Float32Array,
  options: DrawOptions,
  logNormaliser: LogNormaliser,
  random: () => number,
): TokenLogprob {
  const temperature = options.temperature === 0 ? 1 : options.temperature;
  const id = options.temperature === 0 ? argmax(logits, options.bannedIds) : sample(logits, temperature, options, random);
  return { id, logprob: (logits[id] ?? Number.NaN) / temperature - logNormaliser(temperature) };
}

function argmax(logits: Float32Array, bannedIds: readonly number[]): number {
  const banned = new Set(bannedIds);
  let best = -1;
  for (let id = 0; id < logits.length; id++) {
    if ((best < 0 || (logits[id] ?? 0) > (logits[best] ?? 0)) && !banned.has(id)) best = id;
  }
  return best;
}

function sample(logits: Float32Array, temperature: number, options: DrawOptions, random: () => number): number {
  const kept = truncate(candidates(logits, temperature, options.bannedIds), options);
  const total = kept.reduce((sum, { weight }) => sum + weight, 0);
  let left = random() * total;
  for (const { id, weight } of kept) {
    left -= weight;
    if (left < 0) return id;
  }
  // Rounding may leave a sliver above the last weight.
  return kept[kept.length - 1]?.id ?? 0;
}

interface Weighted {
  readonly id: number;
  readonly weight: number;
}

function candidates(logits: Float32Array, temperature: number, bannedIds: readonly number[]): Weighted[] {
  const banned = new Set(bannedIds);
  let peak = Number.NEGATIVE_INFINITY;
  for (const logit of logits) peak = Math.max(peak, logit);
  const all: Weighted[] = [];
  logits.forEach((logit, id) => {
    if (!banned.has(id)) all.push({ id, weight: Math.exp((logit - peak) / temperature) });
  });
  return all;
}

/** The topK heaviest, then the fewest of those that hold topP of their weight. */
function truncate(all: Weighted[], { topK, topP }: DrawOptions): Weighted[] {
  if (topK === 0 && topP >= 1) return all;
  const sorted = all.toSorted((a, b) => b.weight - a.weight || a.id - b.id);
  const heaviest = topK === 0 ? sorted : sorted.slice(0, topK);
  const enough = topP * heaviest.reduce((sum, { weight }) => sum + weight, 0);
  let held = 0;
  let count = 0;
  for (const { weight } of heaviest) {
    held += weight;
    count += 1;
    if (held >= enough) break;
  }
  return heaviest.slice(0, count);
}
