import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize, relative } from 'node:path';
import { describe, expect, it } from 'vitest';

const root = new URL('..', import.meta.url).pathname;

/**
 * Rooms from the bottom up: a file may import its own room and any room of a lower level. Rooms of one level are
 * adapters or peers and never import one another.
 */
const LEVELS: readonly (readonly string[])[] = [
  ['src/types.ts', 'src/errors.ts', 'src/random.ts'],
  ['src/paths.ts'],
  ['src/media'],
  ['src/agent'],
  ['src/engines', 'src/tools', 'src/judges', 'src/data', 'src/evaluation'],
  ['src/reports', 'benchmarks', 'src/training'],
  ['src/cli'],
];

const files = ['src', 'benchmarks'].flatMap((folder) => sourceFiles(join(root, folder))).map((path) => relative(root, path));
const imports = new Map(files.map((file) => [file, importsOf(file)]));

describe('architecture', () => {
  it('puts every file into a room', () => {
    expect(files.filter((file) => levelOf(file) === -1)).toEqual([]);
  });

  it('lets imports flow one way', () => {
    const upward = [...imports].flatMap(([file, targets]) =>
      targets.filter((target) => !mayImport(file, target)).map((target) => `${file} → ${target}`),
    );
    expect(upward).toEqual([]);
  });

  it('has no import cycle', () => {
    expect(findCycle()).toBeNull();
  });

  it('keeps the console and the process in the command line', () => {
    const outside = files.filter(
      (file) => !file.startsWith('src/cli/') && /\bconsole\.|\bprocess\.(?:env|argv|exit|std|cwd|on\b)/.test(read(file)),
    );
    expect(outside).toEqual([]);
  });

  it('keeps the algorithm under 100 lines', () => {
    expect(read('src/agent/algorithm.ts').split('\n').length).toBeLessThan(100);
  });
});

function sourceFiles(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    if (entry.isDirectory()) {
      return ['node_modules', 'assembly', '.venv'].includes(entry.name) ? [] : sourceFiles(join(folder, entry.name));
    }
    return entry.name.endsWith('.ts') ? [join(folder, entry.name)] : [];
  });
}

function importsOf(file: string): string[] {
  const specifiers = [...read(file).matchAll(/(?:from|import)\s*\(?\s*'(\.[^']+)'/g)].map((match) => match[1] as string);
  return specifiers.map((specifier) => normalize(join(dirname(file), specifier)).replace(/\.js$/, '.ts'));
}

function roomOf(file: string): string | undefined {
  return LEVELS.flat().find((room) => file === room || file.startsWith(`${room}/`));
}

function levelOf(file: string): number {
  const room = roomOf(file);
  return LEVELS.findIndex((rooms) => room !== undefined && rooms.includes(room));
}

function mayImport(file: string, target: string): boolean {
  return roomOf(file) === roomOf(target) || levelOf(target) < levelOf(file);
}

function findCycle(): string[] | null {
  const done = new Set<string>();
  const visit = (file: string, path: readonly string[]): string[] | null => {
    if (path.includes(file)) return [...path.slice(path.indexOf(file)), file];
    if (done.has(file)) return null;
    for (const target of imports.get(file) ?? []) {
      const cycle = visit(target, [...path, file]);
      if (cycle) return cycle;
    }
    done.add(file);
    return null;
  };
  for (const file of files) {
    const cycle = visit(file, []);
    if (cycle) return cycle;
  }
  return null;
}

function read(file: string): string {
  return readFileSync(join(root, file), 'utf8');
}
