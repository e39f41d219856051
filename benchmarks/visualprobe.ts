// VisualProbe, training split: small details in large pictures (12.6 GB).
import { miniO3Records } from '../src/data/formats/image-folder.js';
import type { DataSource } from '../src/data/source.js';

export const visualprobe: DataSource = {
  name: 'visualprobe',
  title: 'VisualProbe, train',
  role: 'training',
  split: 'train',
  repository: { host: 'huggingface', id: 'Mini-o3/VisualProbe_train', revision: 'main' },
  pins: {},
  licence: 'CC-BY-NC-4.0; not for commercial use',
  expected: { questions: null, sourceRows: null },
  contents: miniO3Records('train.json'),
};
