// The layout of Mini-o3's training sets: train.json beside the pictures, whose paths begin with the repository's own name.
import { z } from 'zod';
import { goldAnswers, idCell, optionalTextCell, withoutImageMarks } from '../cells.js';
import { type RecordContents, records } from '../source.js';

const record = z.object({
  images: z.array(z.string()).min(1),
  doc_id: idCell,
  problem: z.string(),
  solution: z.string(),
  data_source: optionalTextCell,
});

export function miniO3Records(file: string): RecordContents {
  return records({
    file,
    record,
    question: ({ images, doc_id: id, problem, solution, data_source: dataSource }) => ({
      id,
      type: isMultipleChoice(problem) ? 'multiple-choice' : 'open',
      question: withoutImageMarks(problem),
      answers: goldAnswers(solution),
      pictures: images.map((path) => ({ kind: 'file', path: path.split('/').slice(1).join('/') || path })),
      meta: { ...(dataSource && { data_source: dataSource }) },
    }),
  });
}

/** Two lettered options or more: "(A) red (B) blue", or one on each line. */
function isMultipleChoice(problem: string): boolean {
  const letters = [...problem.matchAll(/(?:\(([A-F])\)|(?:^|\n)\s*([A-F])[.)]\s)/g)].map((match) => match[1] ?? match[2]);
  return letters.includes('A') && letters.includes('B');
}
