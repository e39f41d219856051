// A small agent for tests: the micro tokenizer, the default library, the scripted engine, and tools that answer from memory.
import { createHash } from 'node:crypto';
import sharp from 'sharp';
import type { Agent } from '../../src/agent/algorithm.js';
import { createSsrDialect } from '../../src/agent/dialects/ssr.js';
import { createHarness } from '../../src/agent/harness.js';
import { loadLibrary, tokeniseLibrary } from '../../src/agent/library.js';
import { selectionReasoner } from '../../src/agent/reasoning/selection.js';
import { loadTokenizer } from '../../src/agent/tokenizer.js';
import { createScriptedEngine, type Policy, type Script } from '../../src/engines/scripted.js';
import type { Benchmark, Engine, EngineInfo, Image, Question, Toolbox } from '../../src/types.js';

export interface TestAgentOptions {
  readonly script: Script | Policy;
  readonly tools?: Toolbox;
  readonly maxTurns?: number;
  readonly tau?: number;
  readonly info?: Partial<EngineInfo>;
  /** Wraps the scripted engine. */
  readonly wrap?: (engine: Engine) => Engine;
}

const tokenizer = await loadTokenizer('benchmarks/micro/model');
const library = await loadLibrary('configs/libraries/default.json');

export async function testAgent({ script, tools = {}, maxTurns = 8, tau = 0, info, wrap }: TestAgentOptions): Promise<Agent> {
  const dialect = createSsrDialect('Look, search or zoom.', tokenizer.addedTokens);
  const candidates = tokeniseLibrary(library, dialect, tokenizer);
  const scripted = createScriptedEngine({ script, tokenizer, candidates, ...(info && { info }) });
  const engine = wrap ? wrap(scripted) : scripted;
  return {
    engine,
    info: await engine.describe(),
    tokenizer,
    dialect,
    systemIds: tokenizer.encode(dialect.systemTurn()),
    reasoner: selectionReasoner(engine, candidates, { alpha: 1, tau }),
    harness: createHarness(dialect, tokenizer, tools),
    maxTurns,
    sampling: {
      maxNewTokens: 64,
      temperature: 0,
      topP: 1,
      topK: 0,
      seed: 0,
      stopIds: [tokenizer.idOf('<|im_end|>')],
      bannedIds: dialect.visionTokens.map(tokenizer.idOf),
    },
  };
}

export async function plainImage(colour: string, side = 64): Promise<Image> {
  const bytes = await sharp({ create: { width: side, height: side, channels: 3, background: colour } })
    .png()
    .toBuffer();
  return { sha256: createHash('sha256').update(bytes).digest('hex'), bytes, mediaType: 'image/png', width: side, height: side };
}

/** Questions q0, q1, … that all ask the same; the answer is Oslo. */
export async function testBenchmark(count: number): Promise<Benchmark> {
  const image = await plainImage('red');
  const entries = Array.from({ length: count }, (_, i) => ({ id: `q${i}`, type: i % 2 === 0 ? 'even' : 'odd' }));
  return {
    name: 'test',
    split: 'all',
    sha256: '0'.repeat(64),
    entries,
    load: async (id): Promise<Question> => ({ id, type: 'even', text: 'Which city is it?', images: [image], answers: ['Oslo'] }),
  };
}

export const call = (name: string, args: unknown): string =>
  `<tool_call>${JSON.stringify({ name, arguments: args })}</tool_call>`;
export const answer = (text: string): string => `<answer>${text}</answer>`;
