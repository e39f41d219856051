// MMSearch, end-to-end task: the 171 of 300 questions that come with a picture.
import { z } from 'zod';
import { goldAnswers, idCell, imageCell, optionalTextCell, pictureOf, textCell } from '../src/data/cells.js';
import { type DataSource, table } from '../src/data/source.js';

export const mmsearch: DataSource = {
  name: 'mmsearch',
  title: 'MMSearch, end2end, questions with a picture',
  role: 'benchmark',
  split: 'end2end',
  repository: { host: 'huggingface', id: 'CaraJ7/MMSearch', revision: 'main' },
  pins: {},
  licence: 'unspecified by the authors; not to be redistributed',
  expected: { questions: 171, sourceRows: 300 },
  contents: table({
    // The configurations `rerank` and `summarization` (1.7 GB) are other tasks.
    files: { matching: /(?:^|\/)end2end[^/]*\.parquet$/ },
    pictures: 'query_image',
    row: z.object({
      sample_id: idCell,
      query: textCell,
      query_image: imageCell.nullable(),
      area: optionalTextCell,
      subfield: optionalTextCell,
      timestamp: optionalTextCell,
      gt_requery: optionalTextCell,
      gt_answer: z.string().nullable(),
      alternative_gt_answers: z.array(z.string().nullable()).nullish(),
    }),
    question: (row) =>
      row.query_image === null
        ? null
        : {
            id: row.sample_id,
            type: row.area || 'mmsearch',
            question: row.query,
            answers: goldAnswers(row.gt_answer, ...(row.alternative_gt_answers ?? [])),
            pictures: [pictureOf(row.query_image)],
            meta: { subfield: row.subfield, timestamp: row.timestamp, gt_requery: row.gt_requery },
          },
  }),
};
