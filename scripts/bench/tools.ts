// Costs of the tools on this machine, each beside a plain baseline: crop of a 4K JPEG, text search over 100,000 passages, image search over
// 10,000 pictures. Everything is made up from a seed. Processor time stands beside wall time: on a busy machine it is the one to read. Usage: tsx scripts/bench/tools.ts [--quick] (a tenth of the corpora).
import { performance } from 'node:perf_hooks';
import sharp from 'sharp';
import { loadImage } from '../../src/media/image.js';
import { createRandom } from '../../src/random.js';
import { createCrop } from '../../src/tools/crop.js';
import { describePicture } from '../../src/tools/image-search/descriptor.js';
import { createLocalImageSearch } from '../../src/tools/image-search/local.js';
import { createLocalTextSearch, type Passage } from '../../src/tools/text-search/local.js';
import type { Image } from '../../src/types.js';

const scale = process.argv.includes('--quick') ? 0.1 : 1;
const random = createRandom(7);
const upTo = (limit: number): number => Math.floor(random() * limit);

await benchCrop();
await benchTextSearch(100_000 * scale);
await benchImageSearch(10_000 * scale);

async function benchCrop(): Promise<void> {
  const image = await loadImage(await photo(3840, 2160));
  const box = [300, 300, 700, 700] as const;
  const region = { left: 1152, top: 648, width: 1536, height: 864 };
  report(
    'crop, 4K JPEG: sharp alone',
    await median(9, () => sharp(image.bytes).extract(region).png({ compressionLevel: 6 }).toBuffer()),
  );
  report('crop, 4K JPEG: first crop of a picture', await median(9, () => createCrop().crop(image, box)));
  const crop = createCrop();
  await crop.crop(image, box);
  report('crop, 4K JPEG: a further crop, pixels cached', await median(9, () => crop.crop(image, box)));
  const small = [480, 480, 520, 520] as const;
  report('crop, 4K JPEG: a further, small crop (154 x 87)', await median(9, () => crop.crop(image, small)));
}

async function benchTextSearch(count: number): Promise<void> {
  const words = Array.from({ length: 30_000 }, (_, i) => `w${i.toString(36)}`);
  // Frequencies fall with rank, as in prose.
  const word = (): string => words[Math.floor(words.length * random() ** 3)] ?? '';
  const passages: Passage[] = Array.from({ length: count }, (_, i) => ({
    id: String(i),
    text: Array.from({ length: 60 }, word).join(' '),
  }));
  const queries = Array.from({ length: 50 }, () => Array.from({ length: 6 }, word).join(' '));
  const before = heapMegabytes();
  const stop = startMeasuring();
  const search = createLocalTextSearch(passages, { results: 5 });
  report(`text, ${count} passages: index`, stop());
  note(`text, ${count} passages: memory of the index`, `${(heapMegabytes() - before).toFixed(0)} MB`);
  let next = 0;
  report(`text, ${count} passages: query`, await median(50, () => search.search(queries[next++ % queries.length] ?? '')));
  report(
    `text, ${count} passages: query by scanning (words in common)`,
    await median(5, async () => scan(passages, queries[0] ?? '')),
  );
}

/** The plain way: every passage is read for every query. */
function scan(passages: readonly Passage[], query: string): number[] {
  const wanted = new Set(query.split(' '));
  return passages
    .map(({ text }, i) => ({ i, common: text.split(' ').filter((word) => wanted.has(word)).length }))
    .sort((a, b) => b.common - a.common)
    .slice(0, 5)
    .map(({ i }) => i);
}

async function benchImageSearch(count: number): Promise<void> {
  const pictures: Image[] = [];
  for (let i = 0; i < count; i++) pictures.push(await loadImage(await photo(128, 96)));
  const indexed = pictures.map((image, i) => ({ title: String(i), load: async () => image }));
  const search = createLocalImageSearch(indexed, { results: 5 });
  const before = process.memoryUsage().arrayBuffers;
  const stop = startMeasuring();
  await search.search(await cutOf(pictures[0] as Image));
  report(`image, ${count} pictures: index and first query`, stop());
  note(
    `image, ${count} pictures: memory of the index`,
    `${((process.memoryUsage().arrayBuffers - before) / 2 ** 20).toFixed(0)} MB`,
  );
  const queries = await Promise.all(Array.from({ length: 20 }, (_, i) => cutOf(pictures[(i * 37) % count] as Image)));
  let [next, found] = [0, 0];
  report(
    `image, ${count} pictures: query`,
    await median(20, async () => {
      const [best] = await search.search(queries[next] as Image);
      if (best?.title === String((next * 37) % count)) found++;
      next++;
    }),
  );
  note(`image, ${count} pictures: found by a cut of half their sides`, `${found} of 20 first`);
  await benchWholePictures(pictures, queries);
}

/** The plain way: one descriptor of the whole picture each. */
async function benchWholePictures(pictures: readonly Image[], queries: readonly Image[]): Promise<void> {
  const descriptors: Float32Array[] = [];
  for (const picture of pictures) descriptors.push(await describePicture(picture, 1));
  let [next, found] = [0, 0];
  const time = await median(20, async () => {
    const query = await describePicture(queries[next] as Image, 1);
    const likeness = descriptors.map((descriptor) => descriptor.reduce((sum, value, i) => sum + value * (query[i] ?? 0), 0));
    if (likeness.indexOf(Math.max(...likeness)) === (next * 37) % pictures.length) found++;
    next++;
  });
  report(`image, ${pictures.length} pictures: query against whole pictures only`, time);
  note(`image, ${pictures.length} pictures: found that way`, `${found} of 20 first`);
}

/** Half of each side, from a place that is no window of the index. */
async function cutOf(image: Image): Promise<Image> {
  const { width, height } = image;
  const region = { left: Math.round(0.3 * width), top: Math.round(0.2 * height), width: width >> 1, height: height >> 1 };
  return loadImage(await sharp(image.bytes).extract(region).png().toBuffer());
}

/** Coarse random colours, enlarged smoothly: no two pictures are alike, and JPEG has something to do. */
async function photo(width: number, height: number): Promise<Uint8Array> {
  const [columns, rows] = [Math.max(8, width >> 6), Math.max(6, height >> 6)];
  const data = Buffer.from(Array.from({ length: columns * rows * 3 }, () => upTo(256)));
  return sharp(data, { raw: { width: columns, height: rows, channels: 3 } })
    .resize({ width, height, fit: 'fill' })
    .jpeg({ quality: 90 })
    .toBuffer();
}

interface Cost {
  readonly wallMs: number;
  /** Of all threads of this process. */
  readonly processorMs: number;
}

/** Medians, each of its own. */
async function median(times: number, run: () => Promise<unknown>): Promise<Cost> {
  const costs: Cost[] = [];
  for (let i = 0; i < times; i++) {
    const stop = startMeasuring();
    await run();
    costs.push(stop());
  }
  const middle = (values: number[]): number => values.sort((a, b) => a - b)[times >> 1] ?? 0;
  return { wallMs: middle(costs.map(({ wallMs }) => wallMs)), processorMs: middle(costs.map(({ processorMs }) => processorMs)) };
}

function startMeasuring(): () => Cost {
  const [wall, processor] = [performance.now(), process.cpuUsage()];
  return () => {
    const { user, system } = process.cpuUsage(processor);
    return { wallMs: performance.now() - wall, processorMs: (user + system) / 1_000 };
  };
}

function heapMegabytes(): number {
  return process.memoryUsage().heapUsed / 2 ** 20;
}

function report(what: string, { wallMs, processorMs }: Cost): void {
  const digits = (value: number): string => value.toFixed(value < 10 ? 2 : 0);
  note(what, `${digits(processorMs).padStart(6)} ms of processor, ${digits(wallMs)} ms of wall`);
}

function note(what: string, figure: string): void {
  process.stdout.write(`${what.padEnd(64)} ${figure}\n`);
}
