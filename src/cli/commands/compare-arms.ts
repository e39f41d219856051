// What `ssr compare` is told to compare: a finished run, a config, or a way of reasoning with its options.
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join, relative, resolve } from 'node:path';
import { z } from 'zod';
import { reasonings } from '../../agent/reasoning/create.js';
import { DataError, UsageError } from '../../errors.js';
import { readEpisodes } from '../../evaluation/episodes-file.js';
import type { Arm, ArmRun, Facts, Outcome } from '../../reports/compare-outcome.js';
import { outcomeOf } from '../../reports/compare-outcome.js';
import { FIELDS, type FieldName } from '../options.js';
import type { Flags } from '../settings.js';
import { RESULT_FIELDS } from '../tools.js';
import { readArmFile } from './compare-rows.js';

/** An arm before anything has run. */
export type ArmSpec =
  | { readonly kind: 'runs'; readonly name: string; readonly folders: readonly string[] }
  | {
      readonly kind: 'live';
      readonly name: string;
      readonly config: string | undefined;
      readonly flags: Flags;
    };

/**
 * `[label=]results/run[,results/other-benchmark]`, `[label=]config.json` (a config or a row of configs/rows) or `[label=]reasoning[:key=value,…]`, where keys are
 * those of a config file and lists have | between their values. Arms of one name are numbered. Throws UsageError.
 */
export function parseArms(specs: readonly string[]): ArmSpec[] {
  const arms = specs.map(parseArm);
  const seen = new Map<string, number>();
  return arms.map((arm) => {
    const count = (seen.get(arm.name) ?? 0) + 1;
    seen.set(arm.name, count);
    return count === 1 ? arm : { ...arm, name: `${arm.name}-${count}` };
  });
}

function parseArm(spec: string): ArmSpec {
  const [, label, body = spec] = /^([^:=/,]+)=(.+)$/.exec(spec) ?? [];
  const folders = body.split(',');
  if (folders.every((folder) => existsSync(join(folder, 'manifest.json')))) {
    const name = label ?? folders.map((folder) => relative('results', folder) || folder).join(', ');
    return { kind: 'runs', name, folders: folders.map((folder) => resolve(folder)) };
  }
  const [way = '', options = ''] = splitOnce(body, ':');
  const reasoning = way === 'ssr' ? 'selection' : way;
  if (reasonings.some((name) => name === reasoning)) {
    return { kind: 'live', name: label ?? body, config: undefined, flags: { reasoning, ...parseOptions(options, spec) } };
  }
  if (body.endsWith('.json')) {
    if (!existsSync(body)) throw new UsageError('no such config', { where: spec, found: body });
    return { kind: 'live', ...readArmFile(resolve(body)), ...(label !== undefined && { name: label }) };
  }
  throw new UsageError('neither a run, nor a config, nor a way of reasoning', {
    where: spec,
    expected: `a results folder, a .json file, or one of ${reasonings.join(', ')} (ssr is selection)`,
  });
}

function parseOptions(text: string, where: string): Flags {
  const flags: Flags = {};
  for (const option of text === '' ? [] : text.split(',')) {
    const [key = '', value = ''] = splitOnce(option, '=');
    if (!Object.hasOwn(FIELDS, key)) {
      throw new UsageError('no such option of an arm', { where, found: key, expected: 'a key of a config file' });
    }
    flags[key as FieldName] = FIELDS[key as FieldName].kind === 'list' ? value.split('|') : value;
  }
  return flags;
}

function splitOnce(text: string, separator: string): [string, string] {
  const at = text.indexOf(separator);
  return at === -1 ? [text, ''] : [text.slice(0, at), text.slice(at + separator.length)];
}

const text = z.string();
const manifestSchema = z.looseObject({
  identity: z.looseObject({
    settings: z.record(z.string(), z.unknown()),
    benchmark: z.object({ name: text, split: text, sha256: text }),
    plan: text,
    engine: z.looseObject({ engine: text, version: text, model: text, weights: text }),
    prompt: text,
    library: text,
    judge: text,
  }),
  settings: z.looseObject({ concurrency: z.number().optional() }),
  plan: z.array(text),
  machine: z.looseObject({ processor: text, cores: z.number() }),
});
type Manifest = z.infer<typeof manifestSchema>;

/** Settings that belong to a named condition, or to none. */
const NAMED: readonly string[] = [...RESULT_FIELDS, 'benchmark', 'split', 'engine', 'judge', 'limit', 'sample'];

/** Reads finished runs as one arm; throws DataError for what is no run or not finished. */
export async function readArm(name: string, folders: readonly string[]): Promise<Arm> {
  return { name, runs: await Promise.all(folders.map(readRun)) };
}

async function readRun(folder: string): Promise<ArmRun> {
  const manifest = await readManifest(join(folder, 'manifest.json'));
  const outcomes = new Map<string, Outcome>();
  for await (const episode of readEpisodes(join(folder, 'episodes.jsonl'))) outcomes.set(episode.id, outcomeOf(episode));
  const missing = manifest.plan.filter((id) => !outcomes.has(id));
  if (missing.length > 0) {
    throw new DataError('the run is not finished', {
      where: folder,
      found: `${missing.length} of ${manifest.plan.length} questions missing, the first ${missing[0]}`,
      remedy: 'Resume it with the command that started it.',
    });
  }
  const { name, split } = manifest.identity.benchmark;
  return {
    benchmark: `${name}-${split}`,
    facts: factsOf(manifest, [...outcomes.values()]),
    outcomes,
    planned: manifest.plan.length,
  };
}

async function readManifest(path: string): Promise<Manifest> {
  const source = await readFile(path, 'utf8').catch((cause: unknown) => {
    throw new DataError('cannot read the manifest', { where: path, cause });
  });
  const parsed = manifestSchema.safeParse(JSON.parse(source));
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new DataError(`${issue?.path.join('.')}: ${issue?.message}`, { where: path, expected: 'the manifest of a run' });
}

function factsOf({ identity, settings, plan, machine }: Manifest, outcomes: readonly Outcome[]): Facts {
  const { benchmark, engine } = identity;
  const warm = outcomes.filter((outcome) => outcome.warm).length;
  const free = Object.entries(identity.settings).filter(([key]) => !NAMED.includes(key));
  return {
    data: `${benchmark.name}/${benchmark.split} ${benchmark.sha256}`,
    questions: `plan ${identity.plan.slice(0, 12)} (n = ${plan.length})`,
    judge: identity.judge,
    model: `${engine.model} ${engine.weights}`,
    engine: `${engine.engine} ${engine.version}`,
    tools: RESULT_FIELDS.flatMap((name) =>
      identity.settings[name] === undefined ? [] : `${name} ${identity.settings[name]}`,
    ).join(', '),
    // What was measured, not what was meant.
    cache: warm === 0 ? 'no question asked before' : 'questions asked before',
    load: settings.concurrency === undefined ? `one question per core (${machine.cores})` : `${settings.concurrency} in flight`,
    machine: `${machine.processor}, ${machine.cores} cores`,
    other: Object.fromEntries([
      ...free.map(([key, value]) => [key, String(value)]),
      ['prompt', identity.prompt.slice(0, 12)],
      ['library', identity.library.slice(0, 12)],
    ]),
  };
}
