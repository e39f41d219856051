// DeepEyes, 4K subset in Mini-o3's layout: the part of DeepEyes' training data that SenseNova-MARS' names point to.
import { miniO3Records } from '../src/data/formats/image-folder.js';
import type { DataSource } from '../src/data/source.js';

export const deepeyes: DataSource = {
  name: 'deepeyes',
  title: 'DeepEyes, 4K subset',
  role: 'training',
  split: 'train',
  repository: { host: 'huggingface', id: 'Mini-o3/DeepEyes_train_4K', revision: 'main' },
  pins: {},
  licence: 'unverified; the data of DeepEyes are Apache-2.0',
  expected: { questions: null, sourceRows: null },
  contents: miniO3Records('train.json'),
};
