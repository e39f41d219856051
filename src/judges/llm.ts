// The judge that asks a language model, for answers that mean the gold in other words.
//   correct = the exact judge calls the answer right, or the model calls it correct for one gold; golds are asked in order until one is
import pLimit from 'p-limit';
import { JudgeError } from '../errors.js';
import type { Judge, Question, Verdict } from '../types.js';
import { hash, type VerdictCache, type VerdictKey } from './cache.js';
import { isExact } from './exact.js';
import { type ChatClientOptions, type ChatMessage, type ChatPart, chat } from './llm-client.js';
import { imagePart } from './llm-image.js';
import type { JudgePrompt } from './llm-prompt.js';
import { readVerdict } from './llm-verdict.js';
import { normaliseText } from './text.js';

export interface LlmJudgeOptions extends ChatClientOptions {
  readonly prompt: JudgePrompt;
  readonly cache: VerdictCache;
  /** Requests at once, over all questions. */
  readonly concurrency: number;
  /** Whether the judge sees the question's pictures; the model must be able to. */
  readonly attachImages: boolean;
}

export interface LlmJudge extends Judge {
  /** Of the prompt; part of a run's record. */
  readonly promptSha256: string;
  /** Requests that were sent (retries not counted), and verdicts that came from the cache. */
  readonly work: { readonly calls: number; readonly fromCache: number };
}

class UnreadableVerdict extends JudgeError {}

/** A verdict names `exact` when no model was needed, else `llm:<model>`. Throws JudgeError when the model gives none. */
export function createLlmJudge(options: LlmJudgeOptions): LlmJudge {
  const name = `llm:${options.model}`;
  const limit = pLimit(options.concurrency);
  const running = new Map<string, Promise<boolean>>();
  const work = { calls: 0, fromCache: 0 };

  return {
    name,
    promptSha256: options.prompt.sha256,
    work,
    async judge(question, answer, signal): Promise<Verdict> {
      if (question.answers.length === 0)
        throw new JudgeError('no gold answer to compare with', { where: `question ${question.id}` });
      if (isExact(question, answer)) return { correct: true, judge: 'exact' };
      // Nothing was said, so nothing has to be understood.
      if (normaliseText(answer) === '') return { correct: false, judge: 'exact' };
      let unreadable: UnreadableVerdict | null = null;
      for (const gold of question.answers) {
        try {
          if (await compare(question, gold, answer, signal)) return { correct: true, judge: name };
        } catch (error) {
          // Another gold may still decide; a server that does not answer would not answer then either.
          if (!(error instanceof UnreadableVerdict)) throw error;
          unreadable ??= error;
        }
      }
      if (unreadable !== null) throw unreadable;
      return { correct: false, judge: name };
    },
  };

  async function compare(question: Question, gold: string, answer: string, signal?: AbortSignal): Promise<boolean> {
    const key = keyOf(question, gold, answer, options);
    const known = options.cache.get(key);
    if (known !== undefined) {
      work.fromCache += 1;
      return known;
    }
    // Repeats of a question ask once.
    const id = hash(key);
    const asked = running.get(id) ?? limit(() => ask(question, key, signal)).finally(() => running.delete(id));
    running.set(id, asked);
    return asked;
  }

  async function ask(question: Question, key: VerdictKey, signal?: AbortSignal): Promise<boolean> {
    signal?.throwIfAborted();
    const first = await userMessage(options.prompt.fill(key), question, options.attachImages);
    const reply = await send([first], signal);
    const verdict = readVerdict(reply);
    if (verdict !== null) return keep(key, verdict, reply);
    const repaired = await send(repairMessages(first, reply, options.prompt.repair), signal);
    const second = readVerdict(repaired);
    if (second !== null) return keep(key, second, repaired);
    throw new UnreadableVerdict('no verdict can be read from the reply, also not from a second one', {
      where: `question ${question.id}`,
      expected: '<verdict>correct</verdict> or <verdict>wrong</verdict>',
      found: JSON.stringify((repaired || reply).slice(-200)),
    });
  }

  function send(messages: readonly ChatMessage[], signal?: AbortSignal): Promise<string> {
    work.calls += 1;
    return chat(messages, options, signal);
  }

  async function keep(key: VerdictKey, correct: boolean, reply: string): Promise<boolean> {
    await options.cache.set(key, correct, reply);
    return correct;
  }
}

function keyOf(question: Question, gold: string, answer: string, options: LlmJudgeOptions): VerdictKey {
  return {
    promptSha256: options.prompt.sha256,
    model: options.model,
    parameters: options.parameters,
    question: question.text,
    images: options.attachImages ? question.images.map(({ sha256 }) => sha256) : [],
    gold,
    answer,
  };
}

async function userMessage(text: string, { images }: Question, attachImages: boolean): Promise<ChatMessage> {
  if (!attachImages || images.length === 0) return { role: 'user', content: text };
  const parts: ChatPart[] = await Promise.all(images.map(imagePart));
  return { role: 'user', content: [...parts, { type: 'text', text }] };
}

/** Servers refuse an empty assistant message, so an empty reply is not quoted. */
function repairMessages(first: ChatMessage, reply: string, repair: string): ChatMessage[] {
  const quoted: ChatMessage[] = reply.trim() === '' ? [] : [{ role: 'assistant', content: reply }];
  return [first, ...quoted, { role: 'user', content: repair }];
}
