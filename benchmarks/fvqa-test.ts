// FVQA, test split: 1800 questions of MMSearch-R1's authors.
import { verlTable } from '../src/data/formats/verl.js';
import type { DataSource } from '../src/data/source.js';

export const fvqaTest: DataSource = {
  name: 'fvqa-test',
  title: 'FVQA, test',
  role: 'benchmark',
  split: 'test',
  repository: { host: 'huggingface', id: 'lmms-lab/FVQA', revision: 'bb4a4ff4c9c3fd0382d11f5d7fccd66d0b8428b5' },
  pins: {},
  licence: 'Apache-2.0',
  expected: { questions: 1800, sourceRows: 1800 },
  contents: verlTable({ path: 'fvqa_test.parquet' }, 'fvqa_test'),
};
