import { describe, expect, it } from 'vitest';
import { type Agent, runTrajectory } from '../../../src/agent/algorithm.js';
import { Context } from '../../../src/agent/context.js';
import { afterWrittenThought } from '../../../src/agent/dialects/written.js';
import { createHarness } from '../../../src/agent/harness.js';
import { autoregressiveReasoner } from '../../../src/agent/reasoning/autoregressive.js';
import { withFallback } from '../../../src/agent/reasoning/fallback.js';
import { noReasoner } from '../../../src/agent/reasoning/none.js';
import { openFirstTurn, tableSource } from '../../../src/agent/reasoning/opening.js';
import { createThoughtReader, thoughtTags } from '../../../src/agent/reasoning/thought.js';
import { type WrittenOptions, writtenReasoner } from '../../../src/agent/reasoning/written.js';
import { EngineError } from '../../../src/errors.js';
import { createRandom } from '../../../src/random.js';
import type { Engine, Phase, Reasoner, Stop, Turn } from '../../../src/types.js';
import { answer, call, plainImage, type TestAgentOptions, testAgent } from '../../support/agent.js';

interface Run {
  readonly stop: Stop;
  readonly turns: readonly Turn[];
  readonly context: Context;
  readonly agent: Agent;
  /** Phases in the order in which they ended. */
  readonly phases: readonly Phase[];
}

async function run(options: TestAgentOptions, reasonerOf: (agent: Agent, written: WrittenOptions) => Reasoner): Promise<Run> {
  const base = await testAgent(options);
  const dialect = afterWrittenThought(base.dialect);
  const written = { tokenizer: base.tokenizer, tags: thoughtTags(dialect), maxTokens: 100 };
  const tools = { textSearch: { name: 'memory', search: async () => [{ text: 'X city: Oslo.' }] } };
  const agent = { ...base, dialect, harness: createHarness(dialect, base.tokenizer, tools), reasoner: reasonerOf(base, written) };
  const context = new Context('q', agent.info.geometry, agent.tokenizer.idOf('<|image_pad|>'));
  const [turns, phases]: [Turn[], Phase[]] = [[], []];
  const question = { id: 'q', type: 't', text: 'Which city?', images: [await plainImage('red')], answers: ['Oslo'] };
  const stop = await runTrajectory(question, agent, {
    context,
    random: createRandom(1),
    onSystem: () => undefined,
    span: async (phase, work) => {
      const value = await work();
      phases.push(phase);
      return value;
    },
    onTurn: (turn) => turns.push(turn),
  });
  return { stop, turns, context, agent, phases };
}

const script = (...actions: string[]) => ({ '*': actions.map((action) => ({ candidate: 0, action })) });
const think = (text: string): string => `<thinking>${text}</thinking>`;
const freeform = (agent: Agent, written: WrittenOptions): Reasoner => writtenReasoner('freeform', agent.engine, written);
const lookUp = call('text_search_tool', { query: 'city of X' });

describe('written reasoning', () => {
  it('splits one generation into thought and action, counted on ids', async () => {
    const { stop, turns, context, agent } = await run(
      { script: script(`${think('I must look it up.')}${lookUp}`, `${think('Now I know.')}\n${answer(' Oslo')}`) },
      freeform,
    );
    expect(stop).toEqual({ status: 'answer', reason: null, answer: 'Oslo' });
    const texts = turns.map(({ reasoning }) => agent.tokenizer.decode(reasoning.ids).trim());
    expect(texts).toEqual([think('I must look it up.'), think('Now I know.')]);
    for (const { historyLength, reasoning, generation } of turns) {
      const action = generation.tokens.map(({ id }) => id);
      const span = [...reasoning.ids, ...action];
      expect(context.ids.slice(historyLength, historyLength + span.length)).toEqual(span);
      expect(reasoning.written).toHaveLength(reasoning.ids.length);
      expect(reasoning.selection).toBeNull();
    }
  });

  it('books every computed token once', async () => {
    const { turns, context, agent } = await run(
      { script: script(`${think('I must look it up.')}${lookUp}`, `${think('Now I know.')}${answer('Oslo')}`) },
      freeform,
    );
    const computed = turns.reduce(
      (sum, { prefill, reasoning, generation }) =>
        sum + prefill.computedTokens + reasoning.usage.computedTokens + generation.usage.computedTokens,
      0,
    );
    // All positions but the system prompt, which was computed before, and the very last token, which is not read.
    expect(computed).toBe(context.length - agent.systemIds.length - 1);
    for (const { reasoning, historyPositions } of turns) {
      expect(reasoning.usage).toEqual({
        promptTokens: historyPositions,
        cachedTokens: historyPositions,
        computedTokens: reasoning.ids.length,
        imagesEncoded: 0,
      });
    }
  });

  it('ends when the closing tag arrives, before the action is written', async () => {
    let release = (): void => undefined;
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    const slow = (engine: Engine): Engine => ({
      ...engine,
      async generate(context, sampling, options = {}) {
        const told: Parameters<NonNullable<typeof options.onToken>>[0][] = [];
        const generation = await engine.generate(context, sampling, { onToken: (token) => void told.push(token) });
        const { tokenizer } = await testAgent({ script: script('') });
        const end = told.findIndex((_, i) => tokenizer.decode(told.slice(0, i + 1).map(({ id }) => id)).includes('</thinking>'));
        for (const token of told.slice(0, end + 1)) options.onToken?.(token);
        await gate;
        for (const token of told.slice(end + 1)) options.onToken?.(token);
        return generation;
      },
    });
    const agent = await testAgent({ script: script(`${think('Done.')}${answer('Oslo')}`), wrap: slow });
    const reasoner = freeform(agent, { tokenizer: agent.tokenizer, tags: thoughtTags(agent.dialect), maxTokens: 50 });
    const context = new Context('q', agent.info.geometry, agent.tokenizer.idOf('<|image_pad|>'));
    context.append(agent.systemIds);
    const reasoning = await reasoner.reason(context, agent.sampling, () => 0);
    expect(agent.tokenizer.decode(reasoning.ids)).toBe(think('Done.'));
    release();
    const action = await reasoning.action;
    expect(agent.tokenizer.decode(action!.tokens.map(({ id }) => id))).toBe(`${answer('Oslo')}<|im_end|>`);
  });

  it('gives the engine a context that stands still while the history grows by the thought', async () => {
    const lengths: [number, number][] = [];
    const late = (engine: Engine): Engine => ({
      ...engine,
      async generate(context, sampling, options) {
        const before = context.ids.length;
        const generation = await engine.generate(context, sampling, options);
        await new Promise((resolve) => setTimeout(resolve, 5));
        lengths.push([before, context.ids.length]);
        return generation;
      },
    });
    await run({ script: script(`${think('Done.')}${answer('Oslo')}`), wrap: late }, freeform);
    expect(lengths).toHaveLength(1);
    expect(lengths[0]![1]).toBe(lengths[0]![0]);
  });

  it.each([
    ['no closing tag', '<thinking>I wonder and wonder', 'the reasoning has no closing </thinking>'],
    ['no tags at all', 'Oslo', 'the reasoning has no closing </thinking>'],
    ['nothing behind the thought', think('Hm.'), 'neither one <answer>'],
  ])('with %s is an invalid output', async (_, action, reason) => {
    const { stop, turns } = await run({ script: script(action) }, freeform);
    expect(stop.status).toBe('invalid-output');
    expect(stop.reason).toContain(reason);
    expect(turns).toHaveLength(1);
  });

  it('lets a checkpoint act without a thought where its format does', async () => {
    const { stop, turns } = await run({ script: script(answer('Oslo')) }, (agent, written) =>
      writtenReasoner('freeform', agent.engine, { ...written, optional: true }),
    );
    expect(stop.answer).toBe('Oslo');
    expect(turns[0]?.reasoning.ids).toEqual([]);
  });

  it('refuses an engine that keeps its tokens to itself', async () => {
    const mute = (engine: Engine): Engine => ({
      ...engine,
      generate: (context, sampling) => engine.generate(context, sampling),
    });
    const options = { script: script(`${think('Hm.')}${answer('Oslo')}`), wrap: mute };
    await expect(run(options, freeform)).rejects.toThrow(EngineError);
    await expect(run(options, freeform)).rejects.toThrow('did not tell the tokens as it produced them');
  });

  it('passes on a generation that fails, before the tag as after it', async () => {
    const failing =
      (told: boolean) =>
      (engine: Engine): Engine => ({
        ...engine,
        async generate(context, sampling, options) {
          if (told) await engine.generate(context, sampling, options);
          throw new EngineError('the server is gone');
        },
      });
    for (const told of [true, false]) {
      const options = { script: script(`${think('Hm.')}${answer('Oslo')}`), wrap: failing(told) };
      await expect(run(options, freeform)).rejects.toThrow('the server is gone');
    }
  });
});

describe('the reader of a thought', () => {
  it('gives a token that already begins the action to the action', () => {
    const texts = ['<thinking>', 'Hm', '.</', 'thinking', '><', 'answer>'];
    const tokenizer = { decode: (ids: readonly number[]) => ids.map((id) => texts[id]).join('') };
    const read = createThoughtReader(tokenizer as never, { open: '<thinking>', close: '</thinking>' }, false);
    const ends = texts.slice(0, 5).map((_, id) => read({ id }));
    expect(ends).toEqual([null, null, null, null, { kind: 'closed', length: 4 }]);
  });

  it('keeps white space behind the tag in the thought where one token spells both', () => {
    const texts = ['<think>', '</think', '>\n\n'];
    const tokenizer = { decode: (ids: readonly number[]) => ids.map((id) => texts[id]).join('') };
    const read = createThoughtReader(tokenizer as never, { open: '<think>', close: '</think>' }, false);
    expect(texts.map((_, id) => read({ id })).at(-1)).toEqual({ kind: 'closed', length: 3 });
  });
});

describe('an action behind a written thought', () => {
  it.each([
    ['>', `>${answer('x')}`],
    ['white space', `\n\n${answer('x')}`],
    ['both', `>\n${answer('x')}`],
    ['nothing', answer('x')],
  ])('may begin with %s', async (_, text) => {
    const { dialect } = await testAgent({ script: script('') });
    expect(afterWrittenThought(dialect).parseAction(text, [{ width: 64, height: 64 }])).toEqual({ kind: 'answer', text: 'x' });
  });
});

describe('autoregressive selection', () => {
  it.each([
    ['I already know this fact from general knowledge, so I can answer it directly without searching.', 'r_GENERAL_KNOW', 0],
    ['The subject is known but a fact is missing, so I should search the text for it.', 'r_LOOKUP_FACT', 9],
  ])('matches %j to %s at distance %d', async (text, candidate, distance) => {
    const { loadLibrary } = await import('../../../src/agent/library.js');
    const { entries: library } = await loadLibrary('configs/libraries/default.json');
    const { turns, agent } = await run({ script: script(`${think(text)}${answer('Oslo')}`) }, (base, written) =>
      autoregressiveReasoner(base.engine, { ...written, library }),
    );
    expect(turns[0]?.reasoning.match).toEqual({ candidate, distance });
    // What was written stays, matched or not.
    expect(agent.tokenizer.decode(turns[0]!.reasoning.ids)).toBe(think(text));
  });
});

describe('the first words of a thought', () => {
  it('are inserted in the first turn alone, and are not counted as written', async () => {
    const { turns, agent } = await run(
      { script: script(` I look it up.</thinking>${lookUp}`, `${think('Now I know.')}${answer('Oslo')}`) },
      (base, written) =>
        writtenReasoner('probe-prefill', base.engine, {
          ...written,
          opening: openFirstTurn(tableSource({ q: 'The fact is missing.' }), base.tokenizer, written.tags),
        }),
    );
    const [first, second] = turns;
    expect(agent.tokenizer.decode(first!.reasoning.ids)).toBe(think('The fact is missing. I look it up.'));
    expect(agent.tokenizer.decode(second!.reasoning.ids)).toBe(think('Now I know.'));
    const inserted = agent.tokenizer.encode('<thinking>The fact is missing.').length;
    expect(first!.reasoning.written).toHaveLength(first!.reasoning.ids.length - inserted);
    expect(first!.reasoning.usage.computedTokens).toBe(first!.reasoning.ids.length);
  });
});

describe('no reasoning', () => {
  it('acts on the history directly', async () => {
    const { stop, turns } = await run({ script: script(answer('Oslo')) }, () => noReasoner());
    expect(stop.answer).toBe('Oslo');
    expect(turns[0]?.reasoning).toMatchObject({ ids: [], selection: null, written: null, usage: { computedTokens: 0 } });
  });
});

describe('the fallback', () => {
  const options = { script: { '*': [{ candidate: 1, action: `${think('My own words.')}${answer('Oslo')}` }] } };

  it('writes where the margin is too small, and says so', async () => {
    const { turns, stop } = await run(options, (agent, written) =>
      withFallback(agent.reasoner, freeform(agent, written), { margin: 1e9 }),
    );
    expect(stop.answer).toBe('Oslo');
    const { selection, written, usage, ids } = turns[0]!.reasoning;
    expect(selection).toBeNull();
    expect(written).toHaveLength(ids.length);
    // The candidates were scored as well.
    expect(usage.computedTokens).toBeGreaterThan(ids.length);
  });

  it('takes the choice where the margin is wide enough', async () => {
    const { turns } = await run({ script: { '*': [{ candidate: 1, action: answer('Oslo') }] } }, (agent, written) =>
      withFallback(agent.reasoner, freeform(agent, written), { margin: 0.001 }),
    );
    expect(turns[0]?.reasoning.selection?.candidate).toBe('r_ANSWER_FROM_IMAGE');
  });
});
