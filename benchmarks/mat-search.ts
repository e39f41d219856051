// MAT-Search: 150 questions, the first 75 simple and the last 75 hard, by position alone.
import { z } from 'zod';
import { goldAnswers, idCell, textCell } from '../src/data/cells.js';
import { type DataSource, records } from '../src/data/source.js';

const simpleQuestions = 75;

export const matSearch: DataSource = {
  name: 'mat-search',
  title: 'MAT-Search',
  role: 'benchmark',
  split: 'test',
  repository: { host: 'huggingface', id: 'laolao77/MAT', revision: '888ea8775ff0c70b87e016fa3999d1e0c05ddf55' },
  pins: {},
  licence: 'Apache-2.0',
  expected: { questions: 150, sourceRows: 150 },
  contents: records({
    file: 'MAT-Benchmark/MAT-Search.json',
    record: z.object({
      id: idCell,
      question: textCell,
      answer: z.union([z.string(), z.array(z.string())]).nullable(),
      image_path: textCell,
    }),
    question: (record, { row }) => {
      const answers = goldAnswers(...[record.answer].flat());
      // One published row holds its answer where the question belongs, and nothing where the answer belongs.
      const shifted = answers.length === 0 && !record.question.includes('?');
      return {
        id: record.id,
        type: row < simpleQuestions ? 'simple' : 'hard',
        question: record.question,
        answers,
        pictures: [{ kind: 'file', path: `MAT-Benchmark/MAT-Search-image/${record.image_path}` }],
        meta: { index: row },
        flags: shifted ? ['columns-shifted'] : [],
      };
    },
  }),
};
