// Another way to reason on a run's parts: its prompt where none was given, its reasoner, and the dialect its actions are read with.
import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { z } from 'zod';
import { createSsrDialect } from '../../agent/dialects/ssr.js';
import {
  createReasoning,
  promptFiles,
  type ReasoningCounts,
  type ReasoningSettings,
  reasonings,
  scorers,
  sketches,
} from '../../agent/reasoning/create.js';
import { endpointSource, type OpeningSource, tableSource } from '../../agent/reasoning/opening.js';
import { UsageError } from '../../errors.js';
import { packageRoot } from '../../paths.js';
import type { Tokenizer } from '../../types.js';
import { defaultPrompt } from '../defaults.js';
import type { Settings } from '../options.js';
import { readPrompt, type Wiring } from '../wire.js';

const PROBE_TIMEOUT_MS = 10_000;

/** What an arm may say about its reasoning beyond the fields of a run. */
export const reasoningSchema = z.strictObject({
  reasoning: z.enum(reasonings).default('selection'),
  scorer: z.enum(scorers).default('length'),
  maxThoughtTokens: z.coerce.number().int().min(1).default(1024),
  sketch: z.enum(sketches).optional(),
  /** A JSON table of first words by question id, or the address of a probe or router. */
  openings: z.string().min(1).optional(),
  /** Texts that logprob-prefill chooses among, separated by `|`. */
  openingTexts: z.string().min(1).optional(),
  fallback: z.enum(reasonings).optional(),
  fallbackMargin: z.coerce.number().min(0).optional(),
});
export type ReasoningOptions = z.infer<typeof reasoningSchema>;

export interface ReasoningWiring extends Wiring {
  readonly counts: ReasoningCounts;
}

/** The same parts, reasoning in another way. A prompt that the settings name stays; the default gives way to the reasoning's own. */
export async function withReasoning(wiring: Wiring, settings: Settings, options: ReasoningOptions): Promise<ReasoningWiring> {
  const { agent, candidates, library } = wiring;
  const { engine, tokenizer } = agent;
  const ownPrompt = settings.prompt === defaultPrompt();
  const systemPrompt = ownPrompt ? await readPrompts(options.reasoning, wiring) : wiring.systemPrompt;
  const spoken = ownPrompt ? createSsrDialect(systemPrompt, tokenizer.addedTokens) : agent.dialect;
  const systemIds = tokenizer.encode(spoken.systemTurn());
  const { reasoner, dialect, counts } = await createReasoning(await reasoningSettings(settings, options, tokenizer), {
    engine,
    tokenizer,
    dialect: spoken,
    library: candidates,
    systemIds,
  });
  return { ...wiring, library, systemPrompt, counts, agent: { ...agent, dialect, reasoner, systemIds } };
}

async function readPrompts(reasoning: ReasoningOptions['reasoning'], { library }: Wiring): Promise<string> {
  const files = promptFiles(reasoning).map((name) => join(packageRoot(), 'configs/prompts', name));
  return (await Promise.all(files.map((path) => readPrompt(path, library)))).join('\n\n');
}

async function reasoningSettings(
  { alpha, tau }: Settings,
  options: ReasoningOptions,
  tokenizer: Tokenizer,
): Promise<ReasoningSettings> {
  const { reasoning, scorer, maxThoughtTokens, sketch, openings, openingTexts, fallback, fallbackMargin } = options;
  if ((fallback === undefined) !== (fallbackMargin === undefined)) {
    throw new UsageError('fallback and fallbackMargin belong together', { expected: 'both or none' });
  }
  return {
    reasoning,
    scorer,
    alpha,
    tau,
    maxThoughtTokens,
    ...(sketch && { sketch }),
    ...(openings && { openings: await openingSource(openings, tokenizer) }),
    ...(openingTexts && { openingTexts: openingTexts.split('|') }),
    ...(fallback && { fallback: { reasoning: fallback, margin: fallbackMargin ?? 0 } }),
  };
}

async function openingSource(openings: string, tokenizer: Tokenizer): Promise<OpeningSource> {
  if (/^https?:/.test(openings)) return endpointSource({ url: openings, tokenizer, fetch, timeoutMs: PROBE_TIMEOUT_MS });
  const path = resolve(openings);
  try {
    return tableSource(z.record(z.string(), z.string()).parse(JSON.parse(await readFile(path, 'utf8'))));
  } catch (cause) {
    throw new UsageError('cannot read the openings', { where: path, expected: '{"<question id>": "first words"}', cause });
  }
}
