// The only file that names concrete adapters together: from settings to the parts of a run.
import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { loadMicro } from '../../benchmarks/micro/index.js';
import { dataSources } from '../../benchmarks/registry.js';
import type { Agent } from '../agent/algorithm.js';
import { dialectFormat } from '../agent/dialects/registry.js';
import { createHarness } from '../agent/harness.js';
import { type Library, loadLibrary, tokeniseLibrary } from '../agent/library.js';
import { renderCandidates, renderPrompt } from '../agent/prompt.js';
import { loadTokenizer } from '../agent/tokenizer.js';
import { openBenchmark as openDataBenchmark } from '../data/open.js';
import { EngineError, UsageError } from '../errors.js';
import { packageRoot } from '../paths.js';
import type { Tools } from '../tools/create.js';
import type { Benchmark, Candidate, Dialect, Engine, ImageGeometry, Judge, Tokenizer } from '../types.js';
import { defaultPrompts } from './defaults.js';
import { type EngineHooks, openEngine } from './engine.js';
import { type Environment, openJudge } from './judge.js';
import type { Settings } from './options.js';
import { openReasoning } from './reasoning.js';
import { openTools, ownTools } from './tools.js';

export interface Wiring {
  readonly agent: Agent;
  readonly benchmark: Benchmark;
  readonly tools: Tools;
  readonly judge: Judge;
  readonly library: Library;
  readonly candidates: readonly Candidate[];
  readonly systemPrompt: string;
}

/** Everything of a run but its engine. */
export interface Parts {
  readonly model: string;
  readonly tokenizer: Tokenizer;
  readonly dialect: Dialect;
  readonly library: Library;
  readonly candidates: readonly Candidate[];
  readonly systemPrompt: string;
  readonly benchmark: Benchmark;
  readonly tools: Tools;
  readonly judge: Judge;
}

/** Builds every part and starts the engine last, so that bad settings, libraries and data cost nothing. */
export async function wire(settings: Settings, environment: Environment, hooks: EngineHooks = {}): Promise<Wiring> {
  const parts = await wireParts(settings, environment);
  return assemble(parts, await openEngine({ settings, ...parts, environment, hooks }), settings);
}

export async function wireParts(settings: Settings, environment: Environment): Promise<Parts> {
  const library = await loadLibrary(settings.library);
  const prompts = settings.prompt === undefined ? defaultPrompts(settings.dialect, settings.reasoning) : [settings.prompt];
  const systemPrompt = (await Promise.all(prompts.map((path) => readPrompt(path, library)))).join('\n\n');
  const benchmark = await loadBenchmark(settings);
  const model = requireModel(settings);
  const tokenizer = await loadTokenizer(model);
  const tools = await openTools(settings, await ownTools(settings, benchmark), tokenizer, environment);
  const dialect = createDialect(settings, systemPrompt, tokenizer, () => {
    throw new EngineError('boxes in pixels need an engine');
  });
  const candidates = tokeniseLibrary(library, dialect, tokenizer);
  const judge = await openJudge(settings, environment);
  return { model, tokenizer, dialect, library, candidates, systemPrompt, benchmark, tools, judge };
}

/** The parts over an engine; training puts the same ones over new weights after every step. */
export async function assemble(parts: Parts, engine: Engine, settings: Settings): Promise<Wiring> {
  const { tokenizer, library, candidates, systemPrompt, benchmark, tools, judge } = parts;
  const info = await engine.describe();
  const spoken = createDialect(settings, systemPrompt, tokenizer, () => info.geometry);
  const systemIds = tokenizer.encode(spoken.systemTurn());
  const { reasoner, dialect } = await openReasoning(settings, {
    engine,
    tokenizer,
    dialect: spoken,
    library: candidates,
    systemIds,
  });
  return {
    benchmark,
    tools,
    library,
    candidates,
    systemPrompt,
    judge,
    agent: {
      engine,
      info,
      tokenizer,
      dialect,
      systemIds,
      reasoner,
      harness: createHarness(dialect, tokenizer, tools.toolbox),
      maxTurns: settings.maxTurns,
      sampling: {
        maxNewTokens: settings.maxNewTokens,
        temperature: settings.temperature,
        topP: settings.topP,
        topK: settings.topK,
        seed: 0,
        stopIds: [tokenizer.idOf(dialect.stopToken)],
        bannedIds: dialect.visionTokens.map(tokenizer.idOf),
      },
    },
  };
}

function createDialect({ dialect }: Settings, systemPrompt: string, { addedTokens }: Tokenizer, geometry: () => ImageGeometry) {
  return dialectFormat(dialect).create({ systemPrompt, addedTokens, geometry });
}

/** The rendered system prompt: the file's text with the library and the tools filled in. */
export async function readPrompt(path: string, library: Library): Promise<string> {
  const template = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new UsageError('cannot read the prompt', { where: path, found: error.code ?? error.message, cause: error });
  });
  const tools = JSON.parse(await readFile(join(packageRoot(), 'configs/prompts/tools.json'), 'utf8')) as unknown[];
  return renderPrompt(
    template.trimEnd(),
    {
      candidates: renderCandidates(library.entries),
      tools: tools.map((tool) => JSON.stringify(tool)).join('\n'),
    },
    path,
  );
}

/** The questions alone: micro, or a data set that was prepared, a folder, a file. */
export async function loadBenchmark(settings: Pick<Settings, 'benchmark' | 'split' | 'data'>): Promise<Benchmark> {
  const { benchmark, split = 'plain', data } = settings;
  if (benchmark === 'micro') return loadMicro(split, data);
  return openDataBenchmark(
    benchmark,
    data ?? resolve('data'),
    dataSources.map(({ name }) => name),
  );
}

function requireModel({ model }: Settings): string {
  if (model === undefined) throw new UsageError('no model named', { expected: '--model FOLDER' });
  return model;
}
