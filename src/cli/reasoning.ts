// The way to reason of a run, from its settings.
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { z } from 'zod';
import { dialectFormat } from '../agent/dialects/registry.js';
import { type CreatedReasoning, createReasoning, type ReasoningParts } from '../agent/reasoning/create.js';
import { endpointSource, type OpeningSource, tableSource } from '../agent/reasoning/opening.js';
import { UsageError } from '../errors.js';
import type { Tokenizer } from '../types.js';
import type { Settings } from './options.js';

const PROBE_TIMEOUT_MS = 10_000;

/** Throws UsageError for settings that the way to reason cannot do with. */
export async function openReasoning(settings: Settings, parts: ReasoningParts): Promise<CreatedReasoning> {
  const { reasoning, scorer, alpha, tau, maxThoughtTokens, sketch, openings, openingTexts, fallback, fallbackMargin } = settings;
  return createReasoning(
    {
      reasoning,
      scorer,
      alpha,
      tau,
      maxThoughtTokens,
      thoughtOptional: dialectFormat(settings.dialect).writes,
      ...(sketch && { sketch }),
      ...(openings && { openings: await openingSource(openings, parts.tokenizer) }),
      ...(openingTexts && { openingTexts: openingTexts.split('|') }),
      ...(fallback && fallbackMargin !== undefined && { fallback: { reasoning: fallback, margin: fallbackMargin } }),
    },
    parts,
  );
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
