import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { readCorpus } from '../../../src/tools/text-search/corpus.js';
import { temporaryFolder } from '../support/pictures.js';

it('reads passages of both shapes from JSONL', async () => {
  const path = join(await temporaryFolder(), 'corpus.jsonl');
  await writeFile(path, '{"id": "a", "text": "Oslo"}\n\n{"id": 2, "contents": "\\"Rome\\"\\nA city."}\n');
  const { passages, sha256 } = await readCorpus(path);
  expect(passages).toEqual([
    { id: 'a', text: 'Oslo' },
    { id: '2', text: '"Rome"\nA city.' },
  ]);
  expect(sha256).toMatch(/^[0-9a-f]{64}$/);
});

it('reads text files of a folder in the order of their names, and hashes what they say', async () => {
  const folder = await temporaryFolder();
  await mkdir(join(folder, 'b'));
  await writeFile(join(folder, 'z.txt'), 'last\n');
  await writeFile(join(folder, 'b/one.md'), '# One');
  await writeFile(join(folder, 'skip.json'), '{}');
  const first = await readCorpus(folder);
  expect(first.passages).toEqual([
    { id: 'b/one.md', text: '# One' },
    { id: 'z.txt', text: 'last' },
  ]);
  await writeFile(join(folder, 'z.txt'), 'other');
  expect((await readCorpus(folder)).sha256).not.toBe(first.sha256);
});

it.each([
  ['{"id": "a", "text": "x"}\n{"id": "a", "text": "y"}', 'two passages have one id, found a'],
  ['{"id": "a"}', 'corpus.jsonl:1: expected a field text (or contents)'],
  ['{"id": "a", "text": "x"}\nnot json', 'corpus.jsonl:2'],
  ['', 'the corpus is empty'],
])('refuses %j', async (source, message) => {
  const path = join(await temporaryFolder(), 'corpus.jsonl');
  await writeFile(path, source);
  await expect(readCorpus(path)).rejects.toThrow(message);
});
