// The doctor's checks of scores: aligned, cached, of the right pictures, and how much they vary for no reason.
import { type CheckRun, fail, pass, scoreRows, warn } from './doctor-check.js';
import { distance, scoreDistance, square } from './doctor-probe.js';

/** Cold and warm, batched and single computations of one log-prob may differ by this much without anything being wrong. */
const USUAL_NOISE = 0.1;
/** No numerics explain this; a shifted or re-tokenised prompt does. */
const WRONG = 1;

const alignment: CheckRun = async ({ engine, probe }) => {
  const ours = await engine('alignment');
  const history = probe.text('alignment');
  const rows = await scoreRows(ours, history, probe.candidates);
  // The whole prompt as the continuation of its first token: the same numbers must stand at its end.
  const first = probe.text('alignment-whole');
  const head = { trajectory: 'alignment-whole', ids: first.ids.slice(0, 1), images: [], length: 1 };
  const whole = await scoreRows(
    ours,
    head,
    probe.candidates.map((ids) => [...first.ids.slice(1), ...ids]),
  );
  const apart = distance(
    rows,
    whole.map((row, i) => row.slice(-(probe.candidates[i] as readonly number[]).length)),
  );
  const detail = `candidates scored from position L - 1 and within the whole prompt differ by ${nats(apart)} per token at most`;
  if (apart <= USUAL_NOISE) return pass(detail);
  return apart <= WRONG
    ? warn(detail, 'More than usual: compare with another attention backend.')
    : fail(detail, 'The scores are of other positions: do not use this server.');
};

const cacheReuse: CheckRun = async ({ engine, probe, facts, lastCall }) => {
  const ours = await engine('cache');
  const history = probe.text('cache');
  await ours.prefill(history);
  await ours.score(history, probe.candidates);
  const perRow = Math.floor((history.length - 1) / facts.pageSize) * facts.pageSize;
  const expected = perRow * probe.candidates.length;
  const { cachedTokens } = lastCall();
  const detail = `${cachedTokens} of ${expected} history tokens came from the cache over ${probe.candidates.length} rows (${perRow} each with page size ${facts.pageSize})`;
  if (cachedTokens === expected) return pass(detail);
  return warn(
    detail,
    'The prefix cache evicts or is not shared: raise --mem-fraction-static, and pin trajectories to one worker.',
  );
};

/** Sizes that round up, down and half to even, and one far from square. */
const SIZES = [
  [80, 80],
  [333, 97],
  [640, 480],
  [48, 200],
] as const;

const imageDrift: CheckRun = async ({ engine, probe }) => {
  const images = await Promise.all(SIZES.map(([width, height], i) => square(width, height, `hsl(${i * 80}, 70%, 50%)`)));
  const history = probe.pictured('drift', images);
  await (await engine('drift')).prefill(history);
  return pass(
    `${images.length} pictures took the ${history.length - history.ids.length + images.length} tokens that their sizes foretell, and no text changed`,
  );
};

const canary: CheckRun = async ({ engine, probe }) => {
  const ours = await engine('canary');
  const colours = ['red', 'blue'] as const;
  const [red, blue] = await Promise.all(colours.map((colour) => square(256, 256, colour)));
  const score = (name: string, image: typeof red) =>
    scoreRows(ours, probe.pictured(name, image ? [image] : []), probe.candidates);
  const alone = [await score('canary-red', red), await score('canary-blue', blue)] as const;
  const [told] = [distance(...alone)];
  if (told < 0.01)
    return warn(
      `a red and a blue square give the same scores (${nats(told)} apart)`,
      'The model may not see pictures at all: check its vision weights.',
    );
  const together = await Promise.all(Array.from({ length: 8 }, (_, i) => score(`canary-${i}`, i % 2 === 0 ? red : blue)));
  const mixedUp = together.filter(
    (rows, i) => distance(rows, alone[i % 2] as number[][]) > distance(rows, alone[1 - (i % 2)] as number[][]),
  ).length;
  const noise = Math.max(...together.map((rows, i) => distance(rows, alone[i % 2] as number[][])));
  const detail = `8 concurrent questions about a red or a blue square: ${mixedUp} saw the other one; colours ${nats(told)} apart, noise ${nats(noise)}`;
  return mixedUp === 0
    ? pass(detail)
    : fail(detail, 'Pictures are mixed up between requests: do not use this server with concurrency.');
};

const path: CheckRun = async ({ engine, probe, lastCall }) => {
  const ours = await engine('path');
  await ours.score(probe.text('path-text'), probe.candidates);
  const text = lastCall().requests === 1;
  await ours.score(probe.pictured('path-picture', [await square(64, 64, 'green')]), probe.candidates);
  const pictures = lastCall().requests === 1;
  const detail = `candidates go as ${text ? 'one batch' : 'one request each'} without pictures and as ${pictures ? 'one batch' : 'one request each'} with pictures`;
  return text ? pass(detail) : warn(detail, 'Batches fail on this server: see its log.');
};

const noiseFloor: CheckRun = async ({ engine, probe, options }) => {
  const picture = await square(256, 256, 'orange');
  const history = () => probe.pictured('noise', [picture]);
  const cold = await scoreRows(await engine('noise-cold'), history(), probe.candidates);
  const ours = await engine('noise-warm');
  await ours.prefill(history());
  const warm = await scoreRows(ours, history(), probe.candidates);
  const again = await scoreRows(ours, history(), probe.candidates);
  const single: number[][] = [];
  for (const ids of probe.candidates) single.push(...(await scoreRows(ours, history(), [ids])));
  const variants = [warm, again, single];
  const perToken = Math.max(...variants.map((rows) => distance(rows, cold)));
  const floor = Math.max(...variants.map((rows) => scoreDistance(rows, cold)));
  const margins = options.margins ?? [];
  const below = margins.filter((margin) => margin < floor).length;
  const share =
    margins.length === 0
      ? ''
      : `; ${below} of ${margins.length} logged margins (${((100 * below) / margins.length).toFixed(1)}%) are below it`;
  const detail = `one turn scored cold, warm, again and row by row: ${nats(perToken)} per token at most, noise floor of mean scores ${nats(floor)}${share}`;
  if (perToken <= USUAL_NOISE) return pass(detail);
  return perToken <= WRONG
    ? warn(
        detail,
        'Choices with a smaller margin may flip between runs: report margins, or try --enable-deterministic-inference.',
      )
    : fail(detail, 'No numerics explain this: the cache returns other values than a fresh computation.');
};

export const scoringChecks: Readonly<Record<string, CheckRun>> = {
  alignment,
  'cache reuse': cacheReuse,
  'image drift': imageDrift,
  'red and blue': canary,
  'batch or rows': path,
  'noise floor': noiseFloor,
};

function nats(value: number): string {
  return `${value < 0.0001 && value > 0 ? value.toExponential(1) : value.toFixed(4)} nat`;
}
