// InfoSeek: the subset of 2000 questions that MMSearch-R1 published. A Git LFS object; its exact origin within InfoSeek is not known.
import { verlTable } from '../src/data/formats/verl.js';
import type { DataSource } from '../src/data/source.js';

const file = 'mmsearch_r1/data/mmsearch_r1_infoseek_sub_2k.parquet';

export const infoseek: DataSource = {
  name: 'infoseek',
  title: 'InfoSeek, subset of 2000',
  role: 'benchmark',
  split: 'test',
  repository: { host: 'github', id: 'EvolvingLMMs-Lab/multimodal-search-r1', revision: 'main' },
  // The branch may move; size and hash of the object may not.
  pins: { [file]: { sha256: '8d5a0f9e8e6c27dcaca88ace69ea65d28df814d010661126a76c3388ce2e60b4', sizeBytes: 277_391_783 } },
  licence: 'Apache-2.0 (repository); pictures from OVEN',
  expected: { questions: 2000, sourceRows: 2000 },
  contents: verlTable({ path: file }, 'infoseek'),
};
