// Which judge a run uses, from its settings; the key comes from the environment alone.
import { join, resolve } from 'node:path';
import { UsageError } from '../errors.js';
import { openVerdictCache } from '../judges/cache.js';
import { exactJudge } from '../judges/exact.js';
import { createLlmJudge } from '../judges/llm.js';
import { loadJudgePrompt } from '../judges/llm-prompt.js';
import { packageRoot } from '../paths.js';
import type { Judge } from '../types.js';
import type { Settings } from './options.js';

export type Environment = Readonly<Record<string, string | undefined>>;

export type JudgeSettings = Pick<
  Settings,
  'judge' | 'judgeUrl' | 'judgeModel' | 'judgeImages' | 'judgeCache' | 'judgeConcurrency'
>;

/** Throws UsageError when the model judge lacks its address or model, before anything runs. */
export async function openJudge(settings: JudgeSettings, environment: Environment): Promise<Judge> {
  if (settings.judge === 'exact') return exactJudge();
  const { judgeUrl: url, judgeModel: model } = settings;
  if (url === undefined || model === undefined) {
    throw new UsageError('the judge llm needs an endpoint and a model', { expected: '--judge-url URL --judge-model NAME' });
  }
  const prompts = join(packageRoot(), 'configs/prompts');
  const apiKey = environment.SSR_JUDGE_API_KEY;
  return createLlmJudge({
    url,
    model,
    ...(apiKey && { apiKey }),
    parameters: { temperature: 0, max_tokens: 1024 },
    timeoutMs: 60_000,
    attempts: 5,
    retryDelayMs: 500,
    retryDelayLimitMs: 30_000,
    prompt: await loadJudgePrompt(join(prompts, 'judge.txt'), join(prompts, 'judge-repair.txt')),
    cache: await openVerdictCache(settings.judgeCache ?? resolve('results/judge-cache.jsonl')),
    concurrency: settings.judgeConcurrency,
    attachImages: settings.judgeImages ?? false,
  });
}

/** What a run's identity says of the judge's prompt: nothing for a judge that has none. */
export function judgePromptOf(judge: Judge): { readonly judgePrompt?: string } {
  return 'promptSha256' in judge ? { judgePrompt: String(judge.promptSha256) } : {};
}
