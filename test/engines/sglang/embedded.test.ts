import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadMicro, microToolbox } from '../../../benchmarks/micro/index.js';
import { type Agent, runTrajectory } from '../../../src/agent/algorithm.js';
import { Context } from '../../../src/agent/context.js';
import { createSsrDialect } from '../../../src/agent/dialects/ssr.js';
import { createHarness } from '../../../src/agent/harness.js';
import { loadLibrary, tokeniseLibrary } from '../../../src/agent/library.js';
import { selectionReasoner } from '../../../src/agent/reasoning/selection.js';
import { loadTokenizer } from '../../../src/agent/tokenizer.js';
import { readPrompt } from '../../../src/cli/wire.js';
import { createEmbeddedEngine } from '../../../src/engines/embedded/engine.js';
import type { CallRecord } from '../../../src/engines/sglang/calls.js';
import { createSglangEngine } from '../../../src/engines/sglang/engine.js';
import { createRandom } from '../../../src/random.js';
import type { Benchmark, Engine, Tokenizer, Toolbox, Turn } from '../../../src/types.js';
import { type StandIn, startStandIn } from './stand-in.js';

const MODEL = 'benchmarks/micro/model';
const calls: CallRecord[] = [];
let embedded: Engine;
let remote: Engine;
let server: StandIn;
let benchmark: Benchmark;
let tools: Toolbox;
let tokenizer: Tokenizer;

beforeAll(async () => {
  tokenizer = await loadTokenizer(MODEL);
  benchmark = await loadMicro('dev');
  tools = await microToolbox('dev', { textResults: 2, imageResults: 2 });
  embedded = await createEmbeddedEngine(MODEL, { workers: 1 });
  server = await startStandIn(embedded, { imagePadId: tokenizer.idOf('<|image_pad|>') });
  remote = await createSglangEngine({
    urls: [server.url],
    modelFolder: MODEL,
    isolationKey: 'test',
    onCall: (call) => calls.push(call),
  });
}, 60_000);

afterAll(async () => {
  await remote?.close();
  await server?.close();
  await embedded?.close();
});

async function play(engine: Engine, id: string, trajectory: string): Promise<{ turns: Turn[]; context: Context }> {
  const library = await loadLibrary('configs/libraries/default.json');
  const dialect = createSsrDialect(await readPrompt('configs/prompts/micro.txt', library), tokenizer.addedTokens);
  const agent: Agent = {
    engine,
    info: await engine.describe(),
    tokenizer,
    dialect,
    systemIds: tokenizer.encode(dialect.systemTurn()),
    reasoner: selectionReasoner(engine, tokeniseLibrary(library, dialect, tokenizer), { alpha: 1, tau: 0 }),
    harness: createHarness(dialect, tokenizer, tools),
    maxTurns: 4,
    sampling: {
      maxNewTokens: 48,
      temperature: 0,
      topP: 1,
      topK: 0,
      seed: 0,
      stopIds: [tokenizer.idOf('<|im_end|>')],
      bannedIds: dialect.visionTokens.map((token) => tokenizer.idOf(token)),
    },
  };
  const turns: Turn[] = [];
  const context = new Context(trajectory, agent.info.geometry, tokenizer.idOf('<|image_pad|>'));
  await runTrajectory(await benchmark.load(id), agent, {
    context,
    random: createRandom(1),
    span: (_, run) => run(),
    onSystem: () => undefined,
    onTurn: (turn) => turns.push(turn),
  });
  await engine.release(trajectory);
  return { turns, context };
}

describe('Algorithm 1 over the protocol', () => {
  it('is Algorithm 1 on the engine behind it: ids, choices and scores', async () => {
    const ids = ['fact-of-pictured', 'tile-fine'].map(
      (type) => benchmark.entries.find((entry) => entry.type === type)?.id as string,
    );
    for (const id of ids) {
      const direct = await play(embedded, id, `direct-${id}`);
      const through = await play(remote, id, `remote-${id}`);
      expect(through.context.ids).toEqual(direct.context.ids);
      expect(through.context.length).toBe(direct.context.length);
      expect(through.turns.length).toBe(direct.turns.length);
      through.turns.forEach((turn, t) => {
        const other = direct.turns[t] as Turn;
        expect(turn.reasoning.selection?.candidate).toBe(other.reasoning.selection?.candidate);
        expect(turn.actionText).toBe(other.actionText);
        turn.reasoning.selection?.scores.forEach((score, i) => {
          expect(Math.abs(score - (other.reasoning.selection?.scores[i] as number))).toBeLessThan(1e-4);
        });
        turn.generation.tokens.forEach(({ logprob }, i) => {
          expect(Math.abs(logprob - (other.generation.tokens[i]?.logprob as number))).toBeLessThan(1e-4);
        });
      });
    }
  }, 120_000);

  it('computes new tokens once: the prefix of every call comes from the cache', () => {
    const scores = calls.filter(({ verb }) => verb === 'score');
    expect(scores.length).toBeGreaterThan(1);
    // Six rows, of which each computes its own tokens and the boundary again.
    for (const { promptTokens, cachedTokens } of scores) expect(promptTokens - cachedTokens).toBeLessThan(6 * 40);
    for (const { promptTokens, cachedTokens } of calls.filter(({ verb }) => verb === 'generate'))
      expect(promptTokens - cachedTokens).toBe(1);
  });
});
