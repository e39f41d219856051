// Serves a checkpoint of this project on a real SGLang server on this CPU until Ctrl-C, so that any command can use it.
//   npx tsx scripts/sglang-cpu/serve.ts [--model benchmarks/micro/model] [--port 30107] [--dtype float32] [--attention released|short|shared] [--attention-threads 1]
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { serve } from '../../src/engines/sglang/serve.js';
import { packageRoot } from '../../src/paths.js';
import { ATTENTION_OPTIONS, attentionEnvironment } from './attention.js';
import { servableCopy } from './model-folder.js';

const { values } = parseArgs({
  options: {
    model: { type: 'string', default: join(packageRoot(), 'benchmarks/micro/model') },
    python: { type: 'string', default: join(packageRoot(), 'scripts/sglang-cpu/.venv/bin/python') },
    port: { type: 'string', default: '30107' },
    dtype: { type: 'string', default: 'float32' },
    ...ATTENTION_OPTIONS,
    threads: { type: 'string', default: '1' },
  },
});

const folder = await mkdtemp(join(tmpdir(), 'ssr-sglang-cpu-'));
const stop = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort());
try {
  const server = await serve({
    model: await servableCopy(values.model, join(folder, 'model')),
    port: Number(values.port),
    python: values.python,
    device: 'cpu',
    extraArguments: ['--dtype', values.dtype, '--log-level', 'warning', '--log-level-http', 'warning'],
    environment: { OMP_NUM_THREADS: values.threads, ...attentionEnvironment(values) },
    readyTimeoutMs: 300_000,
    signal: stop.signal,
  });
  console.log(`Serving ${values.model} at ${server.url}; Ctrl-C stops it.`);
  await Promise.race([server.ended, new Promise((resolve) => stop.signal.addEventListener('abort', resolve))]);
  await server.stop();
} finally {
  await rm(folder, { recursive: true });
}
