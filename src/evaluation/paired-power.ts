// How many questions a comparison needs: the power of the exact McNemar test, summed over everything that could be drawn.
import { binomialCdf, mcNemarP } from './paired.js';

export interface PowerOptions {
  /** Share of questions on which the arms differ at all, 0..1. */
  readonly discordant: number;
  /** True difference of the success rates, 0..discordant. */
  readonly difference: number;
  /** Level of the two-sided test. */
  readonly level?: number;
}

/**
 * P(p <= level) for n questions: d ~ Binomial(n, discordant) of them are discordant, of which b ~ Binomial(d, share) favour the
 * better arm, share = (1 + difference / discordant) / 2. Throws RangeError for shares that cannot be.
 */
export function mcNemarPower(n: number, { discordant, difference, level = 0.05 }: PowerOptions): number {
  if (!(discordant > 0 && discordant <= 1 && difference >= 0 && difference <= discordant)) {
    throw new RangeError(`expected 0 <= difference <= discordant <= 1, found ${difference} and ${discordant}`);
  }
  const share = (1 + difference / discordant) / 2;
  const spread = 8 * Math.sqrt(n * discordant * (1 - discordant)) + 1;
  const [from, to] = [Math.max(0, Math.floor(n * discordant - spread)), Math.min(n, Math.ceil(n * discordant + spread))];
  let power = 0;
  let before = from === 0 ? 0 : binomialCdf(from - 1, n, discordant);
  for (let d = from; d <= to; d++) {
    const upTo = binomialCdf(d, n, discordant);
    power += (upTo - before) * rejection(d, share, level);
    before = upTo;
  }
  return power;
}

/** The least n, to within the saw-tooth of an exact test, whose power is at least `power`; null beyond a million and for no difference. */
export function questionsNeeded(power: number, options: PowerOptions): number | null {
  if (options.difference === 0) return null;
  let high = 8;
  while (mcNemarPower(high, options) < power) {
    high *= 2;
    if (high > 1_000_000) return null;
  }
  let low = high / 2;
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (mcNemarPower(middle, options) >= power) high = middle;
    else low = middle;
  }
  return high;
}

/** P(the test rejects | d discordant pairs): b at most the critical count, or at least d minus it. */
function rejection(d: number, share: number, level: number): number {
  const critical = criticalCount(d, level);
  if (critical < 0) return 0;
  return Math.min(1, binomialCdf(critical, d, share) + binomialCdf(critical, d, 1 - share));
}

/** The largest count of the rarer kind at which the test still rejects; -1 where it never does. */
function criticalCount(d: number, level: number): number {
  let [low, high] = [-1, Math.floor(d / 2)];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (mcNemarP({ onlyFirst: middle, onlySecond: d - middle }) <= level) low = middle;
    else high = middle - 1;
  }
  return low;
}
