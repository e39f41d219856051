// From flags, a config file and a benchmark's preset to the settings of a run, validated once.
import { readFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { dialectFormat } from '../agent/dialects/registry.js';
import { UsageError } from '../errors.js';
import { packageRoot } from '../paths.js';
import { defaultLibrary } from './defaults.js';
import { type Config, configSchema, DEFAULTS, FIELDS, type FieldName, flagOf, type Settings } from './options.js';

/** Command-line values by field name: lists are arrays, switches true. */
export type Flags = Partial<Record<FieldName, string | readonly string[] | true>>;

/**
 * Flags win over the config file, which wins over the preset configs/<benchmark>.json, which wins over the defaults.
 * Paths in a file are relative to that file, on the command line to `cwd`. Throws UsageError naming the flag or key.
 */
export async function readSettings(flags: Flags, configPath: string | undefined, cwd: string): Promise<Settings> {
  const fromFlags = parseFlags(flags, cwd);
  const fromFile = configPath === undefined ? {} : await readConfig(resolve(cwd, configPath));
  return completeSettings({ ...fromFile, ...fromFlags });
}

/** What was given over the benchmark's preset over the defaults; paths are absolute already. */
export async function completeSettings(given: Config): Promise<Settings> {
  const { benchmark } = given;
  if (benchmark === undefined) {
    throw new UsageError('no benchmark named', { expected: '--benchmark NAME', remedy: 'Try: ssr eval --benchmark micro' });
  }
  const preset = await readPreset(benchmark);
  const { maxTurns, writes } = dialectFormat(given.dialect ?? preset.dialect ?? DEFAULTS.dialect);
  const base = { library: defaultLibrary(), reasoning: writes ? 'freeform' : 'selection', maxTurns: maxTurns ?? 8 } as const;
  const settings: Settings = { ...DEFAULTS, ...base, ...preset, ...given, benchmark };
  if (settings.limit !== undefined && settings.sample !== undefined) {
    throw new UsageError('--limit and --sample exclude each other', { remedy: 'Give one of them.' });
  }
  if ((settings.fallback === undefined) !== (settings.fallbackMargin === undefined)) {
    throw new UsageError('--fallback and --fallback-margin belong together', { remedy: 'Give both or none.' });
  }
  if (settings.engine === 'scripted' && settings.script === undefined) {
    throw new UsageError('the scripted engine needs a script', { expected: '--script FILE' });
  }
  return settings;
}

/** Reads one config file; throws UsageError with the file, the key and what was expected. */
export async function readConfig(path: string): Promise<Config> {
  const source = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new UsageError('cannot read the config', { where: path, found: error.code ?? error.message, cause: error });
  });
  let json: unknown;
  try {
    json = JSON.parse(source.replace(/^\ufeff/, ''));
  } catch (error) {
    throw new UsageError('not JSON', { where: path, found: error instanceof Error ? error.message : String(error) });
  }
  const parsed = configSchema.safeParse(json);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    const key = issue?.path.join('.');
    const remedy = issue?.code === 'unrecognized_keys' ? { remedy: `Known keys: ${Object.keys(FIELDS).join(', ')}.` } : {};
    throw new UsageError(`${key ? `${key}: ` : ''}${issue?.message ?? 'malformed'}`, { where: path, ...remedy });
  }
  return resolvePaths(parsed.data as Config, dirname(path));
}

async function readPreset(benchmark: string): Promise<Config> {
  if (!/^[\w-]+$/.test(benchmark)) return {};
  const path = join(packageRoot(), 'configs', `${benchmark}.json`);
  const exists = await readFile(path).then(
    () => true,
    () => false,
  );
  return exists ? readConfig(path) : {};
}

/** Validates command-line values; throws UsageError naming the flag. */
export function parseFlags(flags: Flags, cwd: string): Config {
  const values: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(flags) as [FieldName, NonNullable<Flags[FieldName]>][]) {
    const { kind, schema } = FIELDS[name];
    const parsed = schema.safeParse(kind === 'number' ? toNumber(String(value)) : value);
    if (!parsed.success) {
      throw new UsageError(parsed.error.issues[0]?.message ?? 'malformed', { where: flagOf(name), found: String(value) });
    }
    values[name] = parsed.data;
  }
  return resolvePaths(values as Config, cwd);
}

/** Number('') is 0, which nobody means. */
function toNumber(value: string): number {
  return value.trim() === '' ? Number.NaN : Number(value);
}

/** Paths among the fields, made absolute. */
export function resolvePaths(config: Config, folder: string): Config {
  const isPath = (name: FieldName, value: unknown): boolean =>
    FIELDS[name].kind === 'path' || (name === 'benchmark' && /[\\/]|\.jsonl$|\.json#/.test(String(value)));
  return Object.fromEntries(
    Object.entries(config).map(([name, value]) => [
      name,
      isPath(name as FieldName, value) ? resolve(folder, value as string) : value,
    ]),
  ) as Config;
}
