import { appendFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import sharp from 'sharp';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { JudgeError, UsageError } from '../../src/errors.js';
import { createMemoryCache, openVerdictCache, type VerdictCache } from '../../src/judges/cache.js';
import { createLlmJudge, type LlmJudge, type LlmJudgeOptions } from '../../src/judges/llm.js';
import { loadJudgePrompt } from '../../src/judges/llm-prompt.js';
import { readVerdict } from '../../src/judges/llm-verdict.js';
import { judgeAnswers } from '../../src/judges/rejudge.js';
import { loadImage } from '../../src/media/image.js';
import type { Image, Question } from '../../src/types.js';
import { type Behaviour, type ChatRequest, type LoopbackJudge, startJudge } from './loopback-judge.js';

const prompts = new URL('../../configs/prompts/', import.meta.url).pathname;
const correct: Behaviour = { kind: 'say', text: 'The same city.\n<verdict>correct</verdict>' };
const wrong: Behaviour = { kind: 'say', text: 'Another city.\n<verdict>wrong</verdict>' };

let server: LoopbackJudge;
let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'ssr-judge-'));
});
afterEach(async () => {
  await server?.close();
  await rm(folder, { recursive: true, force: true });
});

async function judgeWith(
  behave: (request: ChatRequest, number: number) => Behaviour,
  options: Partial<LlmJudgeOptions> = {},
): Promise<LlmJudge> {
  server = await startJudge(behave);
  return createLlmJudge({
    url: server.url,
    model: 'judge-1',
    apiKey: 'sk-test',
    parameters: { temperature: 0 },
    timeoutMs: 200,
    attempts: 3,
    retryDelayMs: 1,
    retryDelayLimitMs: 20,
    prompt: await loadJudgePrompt(join(prompts, 'judge.txt'), join(prompts, 'judge-repair.txt')),
    cache: createMemoryCache(),
    concurrency: 4,
    attachImages: false,
    ...options,
  });
}

function question(answers: string[], images: Image[] = [], id = 'q1'): Question {
  return { id, type: 't', text: 'Which city is this?', images, answers };
}

const textOf = (request: ChatRequest | undefined): string => String(request?.body.messages[0]?.content);

describe('verdicts', () => {
  it('needs no model for an answer that equals a gold, nor for an empty one', async () => {
    const judge = await judgeWith(() => wrong);
    expect(await judge.judge(question(['Paris', 'Oslo']), ' oslo. ')).toEqual({ correct: true, judge: 'exact' });
    expect(await judge.judge(question(['Oslo']), ' "…" ')).toEqual({ correct: false, judge: 'exact' });
    expect(server.requests).toEqual([]);
  });

  it('asks for one gold after the other and stops at the first that fits', async () => {
    const judge = await judgeWith((request) => (textOf(request).includes('Christiania') ? correct : wrong));
    expect(await judge.judge(question(['Bergen', 'Christiania', 'Trondheim']), 'the capital of Norway')).toEqual({
      correct: true,
      judge: 'llm:judge-1',
    });
    expect(server.requests.length).toBe(2);
    expect(await judge.judge(question(['Bergen']), 'Nice')).toEqual({ correct: false, judge: 'llm:judge-1' });
  });

  it('sends model, key and parameters, and fills the prompt in one pass', async () => {
    const judge = await judgeWith(() => wrong);
    await judge.judge(question(['{{answer}} $& {x}']), 'my {{gold}} $1');
    expect(server.requests[0]?.headers.authorization).toBe('Bearer sk-test');
    expect(server.requests[0]?.body).toMatchObject({ model: 'judge-1', temperature: 0 });
    expect(textOf(server.requests[0])).toContain(
      '<reference>\n{{answer}} $& {x}\n</reference>\n<answer>\nmy {{gold}} $1\n</answer>',
    );
  });

  it('shows the picture when asked to, scaled down where it is large', async () => {
    const judge = await judgeWith(() => wrong, { attachImages: true });
    const png = await sharp({ create: { width: 2000, height: 1000, channels: 3, background: 'red' } })
      .png()
      .toBuffer();
    await judge.judge(question(['Oslo'], [await loadImage(png)]), 'Nice');
    const [part, text] = (server.requests[0]?.body.messages[0]?.content ?? []) as { type: string; image_url?: { url: string } }[];
    const [header, data] = part?.image_url?.url.split(',') ?? [];
    expect(header).toBe('data:image/jpeg;base64');
    expect(await sharp(Buffer.from(data ?? '', 'base64')).metadata()).toMatchObject({ width: 1448, height: 724 });
    expect(text?.type).toBe('text');
  });

  it('says that a question without gold cannot be judged', async () => {
    const judge = await judgeWith(() => correct);
    await expect(judge.judge(question([]), 'Oslo')).rejects.toThrow(/no gold answer/);
  });

  it('keeps to its own number of requests at once, and asks once for equal ones', async () => {
    const judge = await judgeWith(() => ({ kind: 'slow', ms: 30, text: '<verdict>wrong</verdict>' }), { concurrency: 2 });
    await Promise.all(Array.from({ length: 8 }, (_, i) => judge.judge(question(['Oslo']), `city ${i % 4}`)));
    expect([server.mostAtOnce(), server.requests.length]).toEqual([2, 4]);
  });
});

describe('replies without a verdict', () => {
  it('get one try at repair', async () => {
    const judge = await judgeWith((_, number) => (number === 0 ? { kind: 'say', text: 'Probably yes.' } : correct));
    expect(await judge.judge(question(['Oslo']), 'Oslo, I think')).toEqual({ correct: true, judge: 'llm:judge-1' });
    expect(server.requests[1]?.body.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user']);
  });

  it('for one gold leave it to the others to find the answer correct, never to find it wrong', async () => {
    const judge = await judgeWith((request) =>
      textOf(request).includes('Bergen') ? { kind: 'say', text: '?' } : textOf(request).includes('Oslo') ? correct : wrong,
    );
    expect(await judge.judge(question(['Bergen', 'Oslo']), 'the capital')).toMatchObject({ correct: true });
    await expect(judge.judge(question(['Bergen', 'Trondheim']), 'the capital')).rejects.toThrow(/no verdict can be read/);
  });

  it.each([
    ['malformed', { kind: 'say', text: 'correct' } as Behaviour, 2],
    ['empty', { kind: 'say', text: '' } as Behaviour, 2],
    ['null', { kind: 'say', text: null } as Behaviour, 2],
    ['contradicting', { kind: 'say', text: '<verdict>correct</verdict> or <verdict>wrong</verdict>' } as Behaviour, 2],
    ['no JSON', { kind: 'raw', body: '<html>bad gateway</html>' } as Behaviour, 3],
    ['too slow', { kind: 'slow', ms: 400, text: '<verdict>correct</verdict>' } as Behaviour, 3],
    ['429 for ever', { kind: 'status', status: 429, headers: { 'retry-after': '0' } } as Behaviour, 3],
    ['500 for ever', { kind: 'status', status: 500 } as Behaviour, 3],
    ['hung up', { kind: 'hang up' } as Behaviour, 3],
    ['refused', { kind: 'status', status: 401 } as Behaviour, 1],
  ])('%s: a judge error, never a verdict', async (_, behaviour, requests) => {
    const cache = createMemoryCache();
    const judge = await judgeWith(() => behaviour, { cache });
    await expect(judge.judge(question(['Oslo']), 'Nice')).rejects.toThrow(JudgeError);
    expect(server.requests.length).toBe(requests);
    // Nothing was learnt, so nothing is remembered.
    await expect(judge.judge(question(['Oslo']), 'Nice')).rejects.toThrow(JudgeError);
    expect(server.requests.length).toBe(2 * requests);
  });

  it.each([
    ['429', { kind: 'status', status: 429, headers: { 'retry-after': '0' } } as Behaviour],
    ['500', { kind: 'status', status: 500 } as Behaviour],
    ['a slow reply', { kind: 'slow', ms: 400, text: '' } as Behaviour],
    ['a lost connection', { kind: 'hang up' } as Behaviour],
  ])('%s once is tried again', async (_, behaviour) => {
    const judge = await judgeWith((_request, number) => (number === 0 ? behaviour : wrong));
    expect((await judge.judge(question(['Oslo']), 'Nice')).correct).toBe(false);
    expect(server.requests.length).toBe(2);
  });

  it('stops at once when the run is stopped', async () => {
    const judge = await judgeWith(() => ({ kind: 'slow', ms: 300, text: '<verdict>correct</verdict>' }), { timeoutMs: 5000 });
    const controller = new AbortController();
    setTimeout(() => controller.abort(new Error('stopped')), 20);
    await expect(judge.judge(question(['Oslo']), 'Nice', controller.signal)).rejects.toThrow('stopped');
    expect(server.requests.length).toBe(1);
  });
});

describe('reading a verdict', () => {
  it('takes the marked word alone, after the thoughts', () => {
    expect(readVerdict('<verdict> Correct </verdict>')).toBe(true);
    expect(readVerdict('<think>first <verdict>correct</verdict>?</think>No. <verdict>wrong</verdict>')).toBe(false);
    expect(readVerdict('<think>It could be <verdict>correct</verdict>')).toBeNull();
    expect(readVerdict('<verdict>wrong</verdict>\n<verdict>wrong</verdict>')).toBe(false);
    for (const reply of ['', 'correct', 'Yes', '<verdict>partly</verdict>', '<verdict>correct'])
      expect(readVerdict(reply)).toBeNull();
  });
});

describe('the cache', () => {
  const open = (): Promise<VerdictCache> => openVerdictCache(join(folder, 'cache', 'verdicts.jsonl'));

  it('lets a run be judged again without a single call', async () => {
    const answers = Array.from({ length: 20 }, (_, i) => ({
      id: `q${i}`,
      answer: `answer ${i}`,
      question: async () => question(['Oslo', 'Bergen'], [], `q${i}`),
    }));
    const behave = (request: ChatRequest): Behaviour => (/answer \d*[05]\b/.test(textOf(request)) ? correct : wrong);
    const first = await judgeWith(behave, { cache: await open() });
    const before = await judgeAnswers(answers, first, { concurrency: 5 });
    expect(before.filter((judged) => judged.correct).length).toBe(4);
    expect(first.work).toEqual({ calls: 4 + 16 * 2, fromCache: 0 });
    await server.close();
    const second = await judgeWith(behave, { cache: await open() });
    expect(await judgeAnswers(answers, second, { concurrency: 5 })).toEqual(before);
    expect([server.requests.length, second.work]).toEqual([0, { calls: 0, fromCache: 36 }]);
  });

  it('keeps apart what a verdict depends on', async () => {
    const cache = await open();
    const judge = await judgeWith(() => wrong, { cache });
    await judge.judge(question(['Oslo']), 'Nice');
    const variants: Partial<LlmJudgeOptions>[] = [
      { model: 'judge-2' },
      { parameters: { temperature: 1 } },
      { prompt: { ...(await loadJudgePrompt(join(prompts, 'judge.txt'), join(prompts, 'judge-repair.txt'))), sha256: 'other' } },
    ];
    await server.close();
    for (const [i, variant] of variants.entries()) {
      const other = await judgeWith(() => correct, { cache, ...variant });
      expect(await other.judge(question(['Oslo']), 'Nice'), `variant ${i}`).toMatchObject({ correct: true });
      await server.close();
    }
  });

  it('loses only the torn line of a crash', async () => {
    const judge = await judgeWith(() => wrong, { cache: await open() });
    await judge.judge(question(['Oslo']), 'Nice');
    await judge.judge(question(['Oslo']), 'Lyon');
    const file = join(folder, 'cache', 'verdicts.jsonl');
    const text = await readFile(file, 'utf8');
    await writeFile(file, text.slice(0, -20));
    const again = await judgeWith(() => wrong, { cache: await open() });
    await again.judge(question(['Oslo']), 'Nice');
    await again.judge(question(['Oslo']), 'Lyon');
    expect(again.work).toEqual({ calls: 1, fromCache: 1 });
    await appendFile(file, 'not json\n');
    const third = await judgeWith(() => wrong, { cache: await open() });
    await third.judge(question(['Oslo']), 'Lyon');
    expect(third.work).toEqual({ calls: 0, fromCache: 1 });
  });

  it('says so when the file cannot be used', async () => {
    await writeFile(join(folder, 'file'), '');
    await expect(openVerdictCache(join(folder, 'file', 'verdicts.jsonl'))).rejects.toThrow(/cache of verdicts cannot be used/);
  });
});

describe('judging a run', () => {
  it('counts each kind of end exactly', async () => {
    const judge = await judgeWith((request) => {
      const kind = /<answer>\n(\w+)/.exec(textOf(request))?.[1];
      if (kind === 'right') return correct;
      if (kind === 'wrong') return wrong;
      return kind === 'broken' ? { kind: 'status', status: 500 } : { kind: 'say', text: 'Hm.' };
    });
    const kinds = ['right', 'right', 'right', 'wrong', 'wrong', 'broken', 'unreadable', 'gold'];
    const answers = kinds.map((kind, i) => ({
      id: `${kind}${i}`,
      answer: `${kind} ${i}`,
      question: async () => question(kind === 'gold' ? [] : ['Oslo'], [], `${kind}${i}`),
    }));
    answers.push({ id: 'lost', answer: 'right', question: () => Promise.reject(new Error('picture gone')) });
    const judged = await judgeAnswers(answers, judge, { concurrency: 3 });
    expect(judged.map(({ correct: verdict }) => verdict)).toEqual([true, true, true, false, false, null, null, null, null]);
    expect(judged.map(({ error }) => error?.kind ?? null)).toEqual([
      null,
      null,
      null,
      null,
      null,
      'JudgeError',
      'JudgeError',
      null,
      'UnexpectedError',
    ]);
  });
});

describe('the prompt', () => {
  it('is refused when a mark is missing or a file cannot be read', async () => {
    const file = join(folder, 'judge.txt');
    await writeFile(file, '{{question}} {{gold}}');
    await expect(loadJudgePrompt(file, join(prompts, 'judge-repair.txt'))).rejects.toThrow(/expected \{\{answer\}\}/);
    await expect(loadJudgePrompt(join(folder, 'none.txt'), file)).rejects.toThrow(UsageError);
  });
});
