// LiveVQA, research preview: 3602 questions. Pictures are named by absolute paths of the authors' machine; question texts repeat.
import { z } from 'zod';
import { fileName, goldAnswers, idCell, textCell } from '../src/data/cells.js';
import { type DataSource, records } from '../src/data/source.js';

export const livevqa: DataSource = {
  name: 'livevqa',
  title: 'LiveVQA, research preview',
  role: 'benchmark',
  split: 'test',
  repository: { host: 'huggingface', id: 'ONE-Lab/LiveVQA-Research-Preview', revision: 'main' },
  pins: {},
  licence: 'unverified, probably CC-BY-NC-4.0; access may require accepting terms; not to be redistributed',
  expected: { questions: 3602, sourceRows: 3602 },
  contents: records({
    file: 'qa.json',
    // Its `context` is a list in some records and an object in others; only the topic is read.
    details: { file: 'qa_detailed.json', key: 'sample_id' },
    record: z.object({ sample_id: idCell, query: textCell, query_image: textCell, gt_answer: z.string().nullable() }),
    question: (record, _place, details) => ({
      id: record.sample_id,
      type: typeof details?.topic === 'string' ? details.topic : record.sample_id.replace(/_\d.*$/, ''),
      question: record.query,
      answers: goldAnswers(record.gt_answer),
      pictures: [{ kind: 'file', path: `image/${fileName(record.query_image)}` }],
    }),
  }),
};
