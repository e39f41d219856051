// The parquet layout of verl's training code, which FVQA and the InfoSeek subset use: prompt, images, reward_model.
import { z } from 'zod';
import { goldAnswers, idCell, imageCell, optionalTextCell, parseAliases, pictureOf, withoutImageMarks } from '../cells.js';
import { type FileChoice, type TableContents, table } from '../source.js';

const row = z.object({
  prompt: z.array(z.object({ role: z.string(), content: z.string() })).min(1),
  images: z.array(imageCell),
  reward_model: z.object({ ground_truth: z.string().nullable(), candidate_answers: optionalTextCell }),
  data_source: optionalTextCell,
  data_id: idCell.nullish(),
  category: optionalTextCell,
});

/** `idPrefix` names rows of files that carry no ids: prefix-<row>. */
export function verlTable(files: FileChoice, idPrefix: string): TableContents {
  return table({
    files,
    pictures: 'images',
    row,
    question: ({ prompt, images, reward_model: reward, data_source: dataSource, data_id: id, category }, place) => {
      const aliases = parseAliases(reward.candidate_answers);
      const user = prompt.findLast(({ role }) => role === 'user') ?? prompt[0];
      return {
        id: id ?? `${idPrefix}-${place.row}`,
        type: category || idPrefix,
        question: withoutImageMarks(user?.content ?? ''),
        answers: goldAnswers(reward.ground_truth, ...(aliases?.answers ?? [])),
        pictures: images.map(pictureOf),
        meta: {
          ...(dataSource && { data_source: dataSource }),
          ...(aliases?.others.length && { other_answers: aliases.others }),
        },
        flags: [...(aliases === null ? ['aliases-unreadable'] : []), ...(images.length === 0 ? ['image-missing'] : [])],
      };
    },
  });
}
