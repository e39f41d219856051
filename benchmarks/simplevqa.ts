// SimpleVQA: the 1013 English questions of 2025. Pictures are base64 texts.
import { z } from 'zod';
import { base64Picture, goldAnswers, idCell, optionalTextCell, textCell } from '../src/data/cells.js';
import { type DataSource, table } from '../src/data/source.js';

export const simplevqa: DataSource = {
  name: 'simplevqa',
  title: 'SimpleVQA, English',
  role: 'benchmark',
  split: 'test',
  repository: { host: 'huggingface', id: 'm-a-p/SimpleVQA', revision: 'main' },
  pins: {},
  licence: 'Apache-2.0 on the data set card; pictures from the web',
  expected: { questions: 1013, sourceRows: 2025 },
  contents: table({
    // test_200.parquet is a later sample of the same questions.
    files: { matching: /(?:^|[/_-])test[^/]*\.parquet$/, except: /test_200/ },
    pictures: 'image',
    row: z.object({
      data_id: idCell,
      image: textCell.nullable(),
      language: textCell,
      question: textCell,
      answer: z.string().nullable(),
      image_description: optionalTextCell,
      original_category: optionalTextCell,
      source: optionalTextCell,
      atomic_question: optionalTextCell,
      atomic_fact: optionalTextCell,
      vqa_category: optionalTextCell,
    }),
    question: (row) =>
      row.language !== 'EN'
        ? null
        : {
            id: row.data_id,
            type: row.vqa_category || 'simplevqa',
            question: row.question,
            answers: goldAnswers(row.answer),
            pictures: [base64Picture(row.image ?? '')],
            meta: {
              original_category: row.original_category,
              source: row.source,
              atomic_question: row.atomic_question,
              atomic_fact: row.atomic_fact,
            },
          },
  }),
};
