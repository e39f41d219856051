import { readFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { headerSchema, trajectorySchema } from '../../src/training/minibatch.js';

it('docs/training.md names every field of a minibatch', async () => {
  const text = await readFile('docs/training.md', 'utf8');
  const names = [...fieldNames(headerSchema), ...fieldNames(trajectorySchema)];
  expect(names.length).toBeGreaterThan(40);
  expect(names.filter((name) => !text.includes(`\`${name}\``))).toEqual([]);
});

/** The keys of all objects inside a schema. */
function fieldNames(schema: unknown): string[] {
  const def = (schema as { def: Record<string, unknown> }).def;
  const shape = Object.entries((def.shape as Record<string, unknown> | undefined) ?? {});
  const inside = [def.element, def.innerType].filter((inner) => typeof inner === 'object' && inner !== null && 'def' in inner);
  return [...shape.flatMap(([name, inner]) => [name, ...fieldNames(inner)]), ...inside.flatMap(fieldNames)];
}
