// The embedded engine against transformers: golden files that the trainer makes from the micro checkpoint, read by both test suites.
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ModelConfig, readModelConfig } from '../../../src/engines/embedded/checkpoint-config.js';
import { createEmbeddedEngine } from '../../../src/engines/embedded/engine.js';
import { pixelValues } from '../../../src/engines/embedded/image-encoder.js';
import { layoutContext } from '../../../src/engines/embedded/layout.js';
import { imageTokenCount } from '../../../src/media/geometry.js';
import { loadImage } from '../../../src/media/image.js';
import { packageRoot } from '../../../src/paths.js';
import { createCrop } from '../../../src/tools/crop.js';
import type { Engine, Image, TokenContext } from '../../../src/types.js';

interface GoldenImage {
  readonly path: string;
  readonly bbox_2d: readonly [number, number, number, number] | null;
}

interface ScoreCase {
  readonly name: string;
  readonly images: readonly GoldenImage[];
  readonly sent_ids: readonly number[];
  readonly candidates: readonly { readonly id: string; readonly ids: readonly number[]; readonly log_probs: readonly number[] }[];
}

interface GreedyCase {
  readonly name: string;
  readonly images: readonly GoldenImage[];
  readonly sent_ids: readonly number[];
  readonly generated_ids: readonly number[];
}

interface Greedy {
  readonly cases: readonly GreedyCase[];
  readonly max_new_tokens: number;
  readonly stop_id: number;
}

interface PositionCase {
  readonly name: string;
  readonly grids: readonly (readonly [number, number, number])[];
  readonly expanded_ids: readonly number[];
  readonly positions: readonly (readonly number[])[];
}

interface PixelCase {
  readonly name: string;
  readonly image: GoldenImage;
  readonly source_size: readonly [number, number];
  readonly grid: readonly [number, number, number];
  readonly resized_rgb_base64: string;
  readonly stride: number;
  readonly samples: readonly number[];
}

/** Largest difference of a log-probability that the files' six decimals and float32 sums explain. */
const TOLERANCE = 1e-4;

const model = join(packageRoot(), 'benchmarks/micro/model');
const scores = golden<{ cases: ScoreCase[] }>('scores').cases;
const greedy = golden<Greedy>('greedy');
const written = golden<Greedy>('greedy', 'micro-freeform');
let config: ModelConfig;
let engine: Engine;
let writer: Engine;

beforeAll(async () => {
  config = await readModelConfig(model);
  [engine, writer] = (await Promise.all(
    ['model', 'model-freeform'].map((name) =>
      createEmbeddedEngine(join(packageRoot(), 'benchmarks/micro', name), { workers: 1 }),
    ),
  )) as [Engine, Engine];
});
afterAll(() => Promise.all([engine.close(), writer.close()]));

describe('scores', () => {
  it.each(scores)('$name: log-probabilities of all candidates equal those of transformers', async (golden) => {
    const context = await contextOf(`scores ${golden.name}`, golden.images, golden.sent_ids);
    const { rows } = await engine.score(
      context,
      golden.candidates.map(({ ids }) => ids),
    );
    golden.candidates.forEach(({ log_probs }, candidate) => {
      const differences = (rows[candidate] ?? []).map(({ logprob }, i) => Math.abs(logprob - (log_probs[i] ?? Number.NaN)));
      expect(differences).toHaveLength(log_probs.length);
      expect(Math.max(...differences)).toBeLessThan(TOLERANCE);
    });
  });
});

describe('greedy generation', () => {
  it('covers fifty histories, with and without images', () => {
    expect(greedy.cases).toHaveLength(50);
    expect(new Set(greedy.cases.map(({ images }) => images.length > 0)).size).toBe(2);
  });

  it.each(greedy.cases)('$name: the same ids as transformers', async (golden) => {
    expect(await generatedIds(engine, greedy, golden)).toEqual(golden.generated_ids);
  });

  it.each(written.cases)('$name, with written reasoning: the same ids as transformers', async (golden) => {
    expect(golden.generated_ids.length).toBeGreaterThan(60); // a thought and an action
    expect(await generatedIds(writer, written, golden)).toEqual(golden.generated_ids);
  });
});

describe('positions', () => {
  it.each(golden<{ cases: PositionCase[] }>('positions').cases)(
    '$name: rotary positions equal those of transformers',
    (golden) => {
      const images = golden.grids.map(([, rows, columns], index) => ({
        sha256: `${index}`,
        rows: rows / config.vision.mergeSize,
        columns: columns / config.vision.mergeSize,
      }));
      const sent = golden.expanded_ids.filter(
        (id, i) => id !== config.imageTokenId || golden.expanded_ids[i - 1] !== config.imageTokenId,
      );
      const { positions, length } = layoutContext(sent, images, config.imageTokenId);
      expect(length).toBe(golden.expanded_ids.length);
      for (const axis of [0, 1, 2]) {
        expect(Array.from({ length }, (_, i) => positions[3 * i + axis])).toEqual(golden.positions[axis]);
      }
    },
  );
});

describe('pixels', () => {
  it.each(golden<{ cases: PixelCase[] }>('pixels').cases)(
    '$name: every preprocessed pixel equals the image processor’s',
    async (golden) => {
      const image = await imageOf(golden.image);
      expect([image.width, image.height]).toEqual(golden.source_size);
      const grid = await pixelValues(image, config.pixels);
      expect([1, grid.rows, grid.columns]).toEqual(golden.grid);
      expect(Buffer.from(toRgb(grid.pixels, grid.rows, grid.columns)).toString('base64')).toBe(golden.resized_rgb_base64);

      const repeated = repeatFrames(grid.pixels);
      const samples = golden.samples.map((_, i) => repeated[i * golden.stride] ?? Number.NaN);
      samples.forEach((sample, i) => {
        expect(sample).toBeCloseTo(golden.samples[i] ?? Number.NaN, 6);
      });
    },
  );
});

function golden<T>(name: string, checkpoint = 'micro'): T {
  return JSON.parse(readFileSync(join(packageRoot(), `test/golden/${checkpoint}/${name}.json`), 'utf8')) as T;
}

async function generatedIds(engine: Engine, { max_new_tokens, stop_id }: Greedy, golden: GreedyCase): Promise<number[]> {
  const context = await contextOf(`greedy ${golden.name}`, golden.images, golden.sent_ids);
  const { tokens } = await engine.generate(context, {
    maxNewTokens: max_new_tokens,
    temperature: 0,
    topP: 1,
    topK: 0,
    seed: 0,
    stopIds: [stop_id],
    bannedIds: [],
  });
  return tokens.map(({ id }) => id);
}

async function contextOf(trajectory: string, golden: readonly GoldenImage[], ids: readonly number[]): Promise<TokenContext> {
  const images = await Promise.all(golden.map(imageOf));
  const expanded = images.reduce((sum, { width, height }) => sum + imageTokenCount(width, height, config.pixels) - 1, 0);
  return { trajectory, ids, images, length: ids.length + expanded };
}

async function imageOf({ path, bbox_2d }: GoldenImage): Promise<Image> {
  const image = await loadImage(await readFile(join(packageRoot(), 'benchmarks/micro/data', path)), path);
  return bbox_2d === null ? image : createCrop().crop(image, bbox_2d);
}

/** The reference repeats each channel's pixels for both frames of a still picture. */
function repeatFrames(pixels: Float32Array): Float32Array {
  const area = config.pixels.patchSize ** 2;
  const repeated = new Float32Array(2 * pixels.length);
  for (let start = 0; start < pixels.length; start += area) {
    repeated.set(pixels.subarray(start, start + area), 2 * start);
    repeated.set(pixels.subarray(start, start + area), 2 * start + area);
  }
  return repeated;
}

/** Undoes normalisation and patch order: height x width x 3 bytes. */
function toRgb(pixels: Float32Array, rows: number, columns: number): Uint8Array {
  const { patchSize, mergeSize, mean, std } = config.pixels;
  const width = columns * patchSize;
  const rgb = new Uint8Array(rows * patchSize * width * 3);
  let at = 0;
  for (let block = 0; block < (rows * columns) / mergeSize ** 2; block++) {
    const top = Math.floor(block / (columns / mergeSize)) * mergeSize;
    const left = (block % (columns / mergeSize)) * mergeSize;
    for (let member = 0; member < mergeSize ** 2; member++) {
      const y0 = (top + Math.floor(member / mergeSize)) * patchSize;
      const x0 = (left + (member % mergeSize)) * patchSize;
      for (let channel = 0; channel < 3; channel++) {
        for (let i = 0; i < patchSize ** 2; i++) {
          const place = (y0 + Math.floor(i / patchSize)) * width + x0 + (i % patchSize);
          const level = ((pixels[at++] ?? 0) * (std[channel] ?? 1) + (mean[channel] ?? 0)) * 255;
          rgb[place * 3 + channel] = Math.round(level);
        }
      }
    }
  }
  return rgb;
}
