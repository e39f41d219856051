// The stand-in server as a program, for the command line's tests and for trying things out:
//   npx tsx test/engines/sglang/run-stand-in.ts --port 30000 [--model FOLDER] [--sglang 0.5.18] [--delay-ms 50] [--workers 1]
import { parseArgs } from 'node:util';
import { loadTokenizer } from '../../../src/agent/tokenizer.js';
import { createEmbeddedEngine } from '../../../src/engines/embedded/engine.js';
import { startStandIn } from './stand-in.js';

const { values } = parseArgs({
  options: {
    port: { type: 'string', default: '0' },
    model: { type: 'string', default: 'benchmarks/micro/model' },
    sglang: { type: 'string', default: '0.5.19' },
    'delay-ms': { type: 'string', default: '0' },
    workers: { type: 'string', default: '1' },
  },
});

const engine = await createEmbeddedEngine(values.model, { workers: Number(values.workers) });
const imagePadId = (await loadTokenizer(values.model)).idOf('<|image_pad|>');
const options = { imagePadId, version: values.sglang, metrics: true, delayMs: Number(values['delay-ms']) };
const server = await startStandIn(engine, options, Number(values.port));
console.log(server.url);
for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  process.once(signal, () => void Promise.all([server.close(), engine.close()]));
}
