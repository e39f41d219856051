// HR-MMSearch: 305 questions about photos of 4K class. The split is called "train" but is the benchmark.
import { z } from 'zod';
import { goldAnswers, idCell, imageCell, optionalTextCell, pictureOf, textCell } from '../src/data/cells.js';
import { type DataSource, table } from '../src/data/source.js';

export const hrMmsearch: DataSource = {
  name: 'hr-mmsearch',
  title: 'HR-MMSearch',
  role: 'benchmark',
  split: 'train',
  repository: { host: 'huggingface', id: 'sensenova/HR-MMSearch', revision: 'main' },
  pins: {},
  licence: 'MIT',
  expected: { questions: 305, sourceRows: 305 },
  contents: table({
    files: { matching: /(?:^|\/)train-[^/]*\.parquet$/ },
    pictures: 'query_image',
    row: z.object({
      sample_id: idCell,
      query: textCell,
      query_image: imageCell.nullable(),
      ground_truth: z.string().nullable(),
      difficulty: optionalTextCell,
      category: optionalTextCell,
    }),
    question: (row) => ({
      id: row.sample_id,
      type: row.difficulty || 'hr-mmsearch',
      question: row.query,
      answers: goldAnswers(row.ground_truth),
      pictures: [pictureOf(row.query_image)],
      meta: { category: row.category },
    }),
  }),
};
