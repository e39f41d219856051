import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { score } from '../../src/agent/scoring.js';
import { loadTokenizer } from '../../src/agent/tokenizer.js';
import { createScriptedEngine, readScript, type Script } from '../../src/engines/scripted.js';
import { EngineError, UsageError } from '../../src/errors.js';
import { imageTokenCount } from '../../src/media/geometry.js';
import { packageRoot } from '../../src/paths.js';
import type { Candidate, Image, ImageGeometry, Sampling, TokenContext, TokenLogprob } from '../../src/types.js';

const tokenizer = await loadTokenizer(join(packageRoot(), 'benchmarks/micro/model'));
const geometry: ImageGeometry = { patchSize: 16, mergeSize: 2, minPixels: 16384, maxPixels: 16384 };
const pad = tokenizer.idOf('<|image_pad|>');
const stop = tokenizer.idOf('<|im_end|>');
const image: Image = { sha256: 'aa', bytes: new Uint8Array(), mediaType: 'image/png', width: 128, height: 128 };
const sampling: Sampling = { maxNewTokens: 64, temperature: 0, topP: 1, topK: 0, seed: 0, stopIds: [stop], bannedIds: [pad] };

const texts = [
  'I know this already.',
  'I know this from the picture.',
  'Zoom.',
  'I should search for it, since nothing else would help me here.',
];
const continuations = texts.map((text) => tokenizer.encode(`<thinking>${text}</thinking>`));
const candidates = texts.map((text, i): Candidate => ({ id: `r_${i}`, text, expectedActions: [], ids: continuations[i] ?? [] }));
const search = '<tool_call>{"name": "image_search_tool", "arguments": {}}</tool_call>';
const script: Script = {
  q1: [
    { candidate: 3, action: search },
    { candidate: 'r_0', action: '<answer> Oslo</answer>' },
  ],
  '*': [{ candidate: 1, action: '<answer> red</answer>' }],
};

describe('the scripted engine', () => {
  it.each([0, 0.5, 1])('gives the wanted candidate the best score at length exponent %d', async (alpha) => {
    for (let wanted = 0; wanted < texts.length; wanted++) {
      const engine = createScriptedEngine({
        script: { '*': [{ candidate: wanted, action: 'x' }] },
        tokenizer,
        info: { geometry },
      });
      const { rows } = await engine.score(context('q', 'history'), continuations);
      const scores = rows.map((row) =>
        score(
          row.map(({ logprob }) => logprob),
          alpha,
        ),
      );
      expect(scores.indexOf(Math.max(...scores))).toBe(wanted);
      expect(rows.map((row) => row.map(({ id }) => id))).toEqual(continuations);
    }
  });

  it('gives equal tokens behind equal prefixes equal log-probs', async () => {
    const engine = createScriptedEngine({ script, tokenizer, info: { geometry } });
    const { rows } = await engine.score(context('other', 'history'), continuations);
    const seen = new Map<string, number>();
    for (const row of rows) {
      row.forEach(({ logprob }, i) => {
        const prefix = row
          .slice(0, i + 1)
          .map(({ id }) => id)
          .join();
        expect(logprob).toBe(seen.get(prefix) ?? logprob);
        seen.set(prefix, logprob);
      });
    }
    expect(seen.size).toBeLessThan(rows.flat().length);
  });

  it('plays the turns of its question in order, by place or by id, and a repeated call again', async () => {
    const engine = createScriptedEngine({ script, tokenizer, candidates, info: { geometry } });
    const first = context('q1', 'history');
    expect(await wantedIn(engine, first)).toBe(3);
    const acting = context('q1', 'history and reasoning');
    const played = await engine.generate(acting, sampling);
    expect(tokenizer.decode(played.tokens.map(({ id }) => id))).toBe(`${search}<|im_end|>`);
    expect(await engine.generate(acting, sampling)).toMatchObject({ tokens: played.tokens });
    const second = context('q1', 'history and reasoning, action and observation');
    expect(await wantedIn(engine, second)).toBe(0);
    const last = await engine.generate(context('q1', 'history and reasoning, action and observation, reasoning'), sampling);
    expect(tokenizer.decode(last.tokens.map(({ id }) => id))).toBe('<answer> Oslo</answer><|im_end|>');
    expect(last.finishReason).toBe('stop');
  });

  it('hands out each token of an action', async () => {
    const engine = createScriptedEngine({ script, tokenizer, info: { geometry } });
    const seen: TokenLogprob[] = [];
    const { tokens } = await engine.generate(context('q', 'h'), sampling, { onToken: (token) => seen.push(token) });
    expect(seen).toEqual(tokens);
    expect(seen.at(-1)?.id).toBe(stop);
  });

  it('starts anew once a trajectory is released', async () => {
    const engine = createScriptedEngine({ script, tokenizer, candidates, info: { geometry } });
    await engine.generate(context('q1', 'a'), sampling);
    await engine.release('q1');
    expect(await wantedIn(engine, context('q1', 'a longer history'))).toBe(3);
  });

  it('follows a policy', async () => {
    const policy = (trajectory: string, turn: number) => (turn === 0 ? { candidate: trajectory.length, action: 'x' } : undefined);
    const engine = createScriptedEngine({ script: policy, tokenizer, info: { geometry } });
    expect(await wantedIn(engine, context('ab', 'history'))).toBe(2);
    await engine.generate(context('ab', 'history'), sampling);
    await expect(engine.score(context('ab', 'history goes on'), continuations)).rejects.toThrow(
      'ab, turn 1: the script has no such turn',
    );
  });

  it('cuts an action at the limit of new tokens and at a stop token', async () => {
    const engine = createScriptedEngine({
      script: { '*': [{ candidate: 0, action: 'one two<|im_end|>three' }] },
      tokenizer,
      info: { geometry },
    });
    const cut = await engine.generate(context('q', 'h'), { ...sampling, maxNewTokens: 1 });
    expect(cut).toMatchObject({ finishReason: 'length', tokens: [{ id: tokenizer.encode('one two')[0] }] });
    const { tokens } = await engine.generate(context('q', 'h'), sampling);
    expect(tokens.map(({ id }) => id)).toEqual([...tokenizer.encode('one two'), stop]);
    const endless = await engine.generate(context('q', 'h'), { ...sampling, stopIds: [] });
    expect(endless.finishReason).toBe('length');
  });
});

describe('the work of the scripted engine', () => {
  it('is that of a perfect prefix cache: every token once', async () => {
    const engine = createScriptedEngine({ script, tokenizer, candidates, info: { geometry } });
    const system = ids('system prompt');
    const history = [...system, ...ids(' question '), pad, ...ids(' assistant')];
    const z = continuations[3] ?? [];
    const scored = continuations.reduce((sum, row) => sum + row.length, 0);

    const shared = await engine.prefill(fromIds('system', system), { shared: true });
    expect(shared).toEqual({ promptTokens: system.length, cachedTokens: 0, computedTokens: system.length, imagesEncoded: 0 });

    const positions = history.length + 15;
    const h = fromIds('q1', history, [image]);
    expect(h.length).toBe(positions);
    expect(await engine.prefill(h)).toEqual({
      promptTokens: positions,
      cachedTokens: system.length,
      computedTokens: positions - system.length,
      imagesEncoded: 1,
    });
    const { usage: reasoning } = await engine.score(h, continuations);
    expect(reasoning).toEqual({ promptTokens: positions, cachedTokens: positions, computedTokens: scored, imagesEncoded: 0 });

    const { tokens, usage: action } = await engine.generate(fromIds('q1', [...history, ...z], [image]), sampling);
    expect(action).toMatchObject({ cachedTokens: positions + z.length, computedTokens: tokens.length - 1 });

    const a = tokens.map(({ id }) => id);
    const o = ids('observation');
    const after = await engine.prefill(fromIds('q1', [...history, ...z, ...a, ...o], [image]));
    expect(after).toMatchObject({ computedTokens: 1 + o.length, imagesEncoded: 0 });
    expect(after.cachedTokens + after.computedTokens).toBe(after.promptTokens);
  });

  it('does not take another picture for the same', async () => {
    const engine = createScriptedEngine({ script, tokenizer, info: { geometry } });
    await engine.prefill(fromIds('q1', [...ids('a'), pad, ...ids('b')], [image]));
    const usage = await engine.prefill(fromIds('q1', [...ids('a'), pad, ...ids('b')], [{ ...image, sha256: 'bb' }]));
    expect(usage).toMatchObject({ cachedTokens: ids('a').length, computedTokens: 16 + ids('b').length, imagesEncoded: 1 });
  });

  it('is lost with the losing candidates and with a released trajectory', async () => {
    const engine = createScriptedEngine({ script, tokenizer, candidates, info: { geometry } });
    const h = ids('history');
    await engine.score(fromIds('q1', h), continuations);
    await engine.generate(fromIds('q1', [...h, ...(continuations[3] ?? [])]), sampling);
    const other = [...h, ...(continuations[2] ?? [])];
    const common = (continuations[2] ?? []).findIndex((id, i) => id !== continuations[3]?.[i]);
    expect((await engine.prefill(fromIds('q1', other))).cachedTokens).toBe(h.length + common);
    await engine.release('q1');
    expect((await engine.prefill(fromIds('q1', other))).cachedTokens).toBe(0);
  });
});

describe('the scripted engine refuses', () => {
  const engine = createScriptedEngine({ script, tokenizer, candidates, info: { geometry, contextLength: 40 } });

  it('a context that contradicts itself', async () => {
    await expect(engine.prefill({ ...context('q1', 'history'), length: 999 })).rejects.toThrow(EngineError);
    await expect(engine.prefill(fromIds('q1', [pad], [image, image]))).rejects.toThrow(
      'expected 2 image tokens and 31 positions, found 1 and 16',
    );
  });

  it('a context beyond its length, continuations included', async () => {
    const long = fromIds(
      'q1',
      Array.from({ length: 39 }, () => 5),
    );
    await expect(engine.prefill(long)).resolves.toBeDefined();
    await expect(engine.score(long, continuations)).rejects.toThrow('q1: the context is too long; expected at most 40 positions');
  });

  it('candidates that do not exist', async () => {
    const lost = createScriptedEngine({ script: { '*': [{ candidate: 9, action: '' }] }, tokenizer, info: { geometry } });
    await expect(lost.score(context('q', 'h'), continuations)).rejects.toThrow('expected one of 4, counted from 0, found 9');
    const unknown = createScriptedEngine({
      script: { '*': [{ candidate: 'r_9', action: '' }] },
      tokenizer,
      candidates,
      info: { geometry },
    });
    await expect(unknown.score(context('q', 'h'), continuations)).rejects.toThrow(
      'expected one of: r_0, r_1, r_2, r_3, found r_9',
    );
  });

  it('a question that the script does not hold', async () => {
    const narrow = createScriptedEngine({ script: { q1: script.q1 ?? [] }, tokenizer, info: { geometry } });
    await expect(narrow.score(context('q2', 'h'), continuations)).rejects.toThrow('q2, turn 0: the script has no such turn');
    await expect(narrow.score(context('toString', 'h'), continuations)).rejects.toThrow(
      'toString, turn 0: the script has no such turn',
    );
  });

  it('banned tokens', async () => {
    const forging = createScriptedEngine({
      script: { '*': [{ candidate: 0, action: 'see <|image_pad|>' }] },
      tokenizer,
      info: { geometry },
    });
    await expect(forging.generate(context('q', 'h'), sampling)).rejects.toThrow(
      `q, turn 0: the scripted action holds a banned token, found id ${pad}`,
    );
  });

  it('calls that are aborted', async () => {
    const signal = AbortSignal.abort();
    const h = context('q1', 'h');
    await expect(engine.prefill(h, { signal })).rejects.toThrow('abort');
    await expect(engine.score(h, continuations, { signal })).rejects.toThrow('abort');
    await expect(engine.generate(h, sampling, { signal })).rejects.toThrow('abort');
  });
});

describe('a script file', () => {
  const folder = mkdtemp(join(tmpdir(), 'ssr-script-'));
  afterAll(async () => rm(await folder, { recursive: true, force: true }));
  const file = async (content: string): Promise<string> => {
    const path = join(await folder, 'script.json');
    await writeFile(path, content);
    return path;
  };

  it('is read as it stands', async () => {
    expect(await readScript(await file(JSON.stringify(script)))).toEqual(script);
  });

  it.each([
    ['{', 'cannot read the script; expected a JSON file'],
    ['{"q": []}', 'q: '],
    ['{"q": [{"candidate": -1, "action": "x"}]}', 'q.0.candidate: '],
    ['{"q": [{"candidate": 0, "action": "x", "turn": 1}]}', 'q.0: '],
    ['[]', 'script: '],
  ])('%s is refused with its field', async (content, message) => {
    await expect(readScript(await file(content))).rejects.toThrow(UsageError);
    await expect(readScript(await file(content))).rejects.toThrow(message);
  });

  it('must exist', async () => {
    await expect(readScript(join(await folder, 'none.json'))).rejects.toThrow('none.json: cannot read the script');
  });
});

async function wantedIn(engine: ReturnType<typeof createScriptedEngine>, h: TokenContext): Promise<number> {
  const { rows } = await engine.score(h, continuations);
  const sums = rows.map((row) => row.reduce((sum, { logprob }) => sum + logprob, 0));
  return sums.indexOf(Math.max(...sums));
}

function ids(text: string): number[] {
  return tokenizer.encode(text);
}

function context(trajectory: string, text: string): TokenContext {
  return fromIds(trajectory, ids(text));
}

function fromIds(trajectory: string, sent: readonly number[], images: readonly Image[] = []): TokenContext {
  const positions = images.reduce((sum, { width, height }) => sum + imageTokenCount(width, height, geometry) - 1, sent.length);
  return { trajectory, ids: sent, images, length: positions };
}
