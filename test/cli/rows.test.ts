// configs/rows: one file per published row, true to the published tables.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { dialectFormat } from '../../src/agent/dialects/registry.js';
import { readArmFile, rowSchema } from '../../src/cli/commands/compare-rows.js';

const files = readdirSync('configs/rows');
const table = (name: string): Record<string, string>[] => {
  const [head = '', ...lines] = readFileSync(`results/paper/${name}.csv`, 'utf8').trim().split('\n');
  const columns = head.split(',');
  return lines.map((line) => Object.fromEntries(line.split(',').map((cell, i) => [columns[i], cell])));
};

describe.each(files)('configs/rows/%s', (file) => {
  const row = rowSchema.parse(JSON.parse(readFileSync(`configs/rows/${file}`, 'utf8')));

  it('quotes the published figures', () => {
    for (const { table: name, key, figures } of row.published) {
      const matching = table(name).filter((line) => Object.entries(key).every(([column, value]) => line[column] === value));
      expect(matching).toHaveLength(1);
      for (const [column, figure] of Object.entries(figures)) {
        const cell = matching[0]![column]!;
        expect(typeof figure === 'number' ? Number(cell) : cell).toBe(figure);
      }
    }
  });

  it('can be read as an arm, with a dialect and a library that exist', () => {
    const { name, flags } = readArmFile(`configs/rows/${file}`);
    expect(`${name}.json`).toBe(file);
    expect(dialectFormat(String(flags.dialect)).name).toBe(row.settings.dialect);
    expect(flags.reasoning).toBe(row.reasoning.reasoning);
    if (flags.library !== undefined) expect(existsSync(String(flags.library))).toBe(true);
  });

  it('says what is not known', () => {
    expect(row.unknown).toContain('judge');
  });
});

describe('the rows', () => {
  it('cover every published row', () => {
    const covered = new Set<string>();
    for (const file of files) {
      const { published } = rowSchema.parse(JSON.parse(readFileSync(`configs/rows/${file}`, 'utf8')));
      for (const { table: name, key } of published) covered.add(`${name} ${Object.values(key).join(' ')}`);
    }
    const total = ['success', 'profile', 'objectives', 'scoring-ablation', 'library-size'].reduce(
      (sum, name) => sum + table(name).length,
      0,
    );
    expect(covered.size).toBe(total);
  });
});
