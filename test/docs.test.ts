import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { episodeSchema } from '../src/evaluation/records.js';

describe('docs/algorithm.md', () => {
  it('quotes lines that stand in the source', () => {
    const source = ['algorithm.ts', 'scoring.ts', 'reasoning/selection.ts']
      .map((file) => readFileSync(`src/agent/${file}`, 'utf8'))
      .join('\n');
    const table = readFileSync('docs/algorithm.md', 'utf8')
      .split('\n')
      .filter((line) => /^\| .*`/.test(line));
    const quoted = table.map((row) =>
      /\| `{1,2}(?! )(.+?)`{1,2} \|$/.exec(row.replaceAll('\\|', '¦'))?.[1]?.replaceAll('¦', '|'),
    );
    expect(quoted.length).toBeGreaterThan(14);
    for (const line of quoted) expect(source).toContain(line);
  });
});

describe('documents', () => {
  const files = [
    'README.md',
    'CONTRIBUTING.md',
    'AGENTS.md',
    ...markdownIn('docs'),
    ...markdownIn('benchmarks'),
    ...markdownIn('scripts'),
  ];

  it.each(files)('%s links to files that exist', (file) => {
    const links = [...readFileSync(file, 'utf8').matchAll(/\]\((?!https?:|#|mailto:)([^)#\s]+)/g)].map(
      (match) => match[1] as string,
    );
    expect(links.filter((link) => !existsSync(join(dirname(file), link)))).toEqual([]);
  });
});

describe('docs/formats.md', () => {
  it('names every field of an episode', () => {
    const text = readFileSync('docs/formats.md', 'utf8');
    const missing = [...fieldNames(episodeSchema)].filter(
      (name) => !text.includes(`\`${name}\``) && !text.includes(`.${name}\``),
    );
    expect(missing).toEqual([]);
  });
});

/** Markdown files below a folder that belong to the project. */
function markdownIn(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    if (entry.isDirectory())
      return /^(?:node_modules|runs|data|\..*)$/.test(entry.name) ? [] : markdownIn(join(folder, entry.name));
    return entry.name.endsWith('.md') ? [join(folder, entry.name)] : [];
  });
}

/** The keys of all objects inside a schema. */
function fieldNames(schema: unknown, names = new Set<string>()): Set<string> {
  const def = (schema as { def: Record<string, unknown> }).def;
  const shape = def.shape as Record<string, unknown> | undefined;
  for (const [name, inner] of Object.entries(shape ?? {})) {
    names.add(name);
    fieldNames(inner, names);
  }
  for (const inner of [def.element, def.innerType, ...((def.options as unknown[] | undefined) ?? [])]) {
    if (inner && typeof inner === 'object' && 'def' in inner) fieldNames(inner, names);
  }
  return names;
}
