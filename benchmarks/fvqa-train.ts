// FVQA, training split: 4856 questions, each marked search_free or search_required. Written as one row group of 1.5 GB.
import { verlTable } from '../src/data/formats/verl.js';
import type { DataSource } from '../src/data/source.js';

export const fvqaTrain: DataSource = {
  name: 'fvqa-train',
  title: 'FVQA, train',
  role: 'training',
  split: 'train',
  repository: { host: 'huggingface', id: 'lmms-lab/FVQA', revision: 'bb4a4ff4c9c3fd0382d11f5d7fccd66d0b8428b5' },
  pins: {},
  licence: 'Apache-2.0',
  expected: { questions: 4856, sourceRows: 4856 },
  contents: verlTable({ path: 'fvqa_train.parquet' }, 'fvqa_train'),
};
