// Memory of a run over large photographs: N questions with 8-megapixel JPEGs, a heap limited to 512 MB.
//   npm run bench:pictures -- [--questions 2000] [--distinct 40] [--engine scripted|embedded]
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { execa } from 'execa';
import sharp from 'sharp';

const { values } = parseArgs({
  options: {
    questions: { type: 'string', default: '2000' },
    distinct: { type: 'string', default: '40' },
    engine: { type: 'string', default: 'embedded' },
  },
});
const [questions, distinct] = [Number(values.questions), Number(values.distinct)];
const folder = await mkdtemp(join(tmpdir(), 'ssr-large-'));
try {
  await writeBenchmark();
  const started = Date.now();
  const peak = await run();
  const output = join(folder, 'run');
  const lines = (await readFile(join(output, 'episodes.jsonl'), 'utf8')).split('\n').filter((line) => line !== '');
  const longest = Math.max(...lines.map((line) => line.length));
  const pictures = await readdir(join(output, 'images'));
  const sizes = await Promise.all(pictures.map(async (name) => (await stat(join(output, 'images', name))).size));
  console.log(`${lines.length} of ${questions} questions recorded in ${((Date.now() - started) / 1000).toFixed(0)} s`);
  console.log(`peak RSS ${(peak / 1024).toFixed(0)} MB (heap limited to 512 MB)`);
  console.log(
    `${pictures.length} pictures kept, ${(sizes.reduce((sum, size) => sum + size, 0) / 1e6).toFixed(0)} MB; longest line ${(longest / 1e3).toFixed(1)} kB`,
  );
  console.log(
    `base64 in records: ${lines.some((line) => line.includes('base64') || /[A-Za-z0-9+/]{400}/.test(line)) ? 'yes' : 'none'}`,
  );
} finally {
  await rm(folder, { recursive: true });
}

async function writeBenchmark(): Promise<void> {
  await mkdir(join(folder, 'pictures'));
  for (let i = 0; i < distinct; i++) {
    const noise = await sharp({
      create: { width: 816, height: 612, channels: 3, background: 'grey', noise: { type: 'gaussian', mean: 128, sigma: 60 } },
    })
      .png()
      .toBuffer();
    await sharp(noise)
      .resize(3264, 2448, { kernel: 'cubic' })
      .jpeg({ quality: 90 })
      .toFile(join(folder, 'pictures', `${i}.jpg`));
  }
  const lines = Array.from({ length: questions }, (_, i) =>
    JSON.stringify({
      id: `q${i}`,
      question: 'Name the colour of the shape.',
      images: [`pictures/${i % distinct}.jpg`],
      answers: ['red'],
    }),
  );
  await writeFile(join(folder, 'questions.jsonl'), `${lines.join('\n')}\n`);
  await writeFile(join(folder, 'script.json'), JSON.stringify({ '*': [{ candidate: 1, action: '<answer> red</answer>' }] }));
}

/** Peak resident set of the run in kB, as the kernel counted it. */
async function run(): Promise<number> {
  const settings = [
    '--benchmark',
    join(folder, 'questions.jsonl'),
    '--model',
    'benchmarks/micro/model',
    '--prompt',
    'configs/prompts/micro.txt',
  ];
  const engine = ['--engine', values.engine, '--script', join(folder, 'script.json')];
  const { stderr } = await execa(
    '/usr/bin/time',
    [
      '-f',
      'peak %M',
      process.execPath,
      '--max-old-space-size=512',
      'bin/ssr.js',
      'eval',
      ...settings,
      ...engine,
      '--max-new-tokens',
      '64',
      '--concurrency',
      '4',
      '--output',
      join(folder, 'run'),
    ],
    { stdout: 'ignore' },
  );
  return Number(/peak (\d+)/.exec(stderr)?.[1]);
}
