// Dialect `mmsearch-r1` (MMSearch-R1): <reason>, bare search tags, results inside <information>, a new request in every round, three
// rounds at most. It has no crop. Its own harness repeats the question with every result; here the history holds it once.
import type { Dialect, SearchResult, ToolResult } from '../../types.js';
import { escapeOutsideText } from '../escape.js';
import { chatml, type DialectOptions, PICTURE, replyTurn, systemTurn, userTurn, withoutStop } from './chatml.js';
import { answerRule, firstAction, invalid, textSearch } from './grammar.js';
import { isImageSearch, linesOf, thumbnailsOf } from './results.js';

const REQUEST = [
  'Answer the question about the picture. First write between <reason> and </reason> what you know and what you lack.',
  'If you can answer, go on with <answer>the answer</answer>.',
  'If you must find out what is pictured, go on with <search><img></search>.',
  'If you lack a fact that can be searched in words, go on with <text_search>a short query</text_search>.',
  'One of the three, and nothing behind it.',
].join('\n');
const AFTER_PICTURES =
  'Write between <reason> and </reason> what these pages say about the picture. Then give <answer>the answer</answer>, or search for a missing fact with <text_search>a short query</text_search>.';
const AFTER_TEXTS =
  'Write between <reason> and </reason> what these results say about the question. Then give <answer>the answer</answer>, or search again with <text_search>another query</text_search>.';

export function createMmsearchR1Dialect({ systemPrompt, addedTokens }: DialectOptions): Dialect {
  const outside = (text: string): string => escapeOutsideText(text, addedTokens);
  return {
    ...chatml,
    name: 'mmsearch-r1',
    systemTurn: () => systemTurn(systemPrompt),
    questionTurn: ({ text, images }) =>
      userTurn({ text: `${REQUEST}\n${PICTURE.repeat(images.length)}\nQuestion: ${outside(text)}`, images }),
    wrapReasoning: (text) => `<reason>${text}</reason>`,
    parseAction: (text) =>
      firstAction(
        withoutStop(text),
        [
          answerRule,
          { tag: 'text_search', read: textSearch },
          {
            tag: 'search',
            read: (body) =>
              body.trim() === '<img>' ? { kind: 'image_search_tool' } : invalid('<search> takes <img> and nothing else'),
          },
        ],
        () => invalid('no complete <answer>, <search> or <text_search>'),
      ),
    observation(result, _imageCount, closed) {
      const information = informationOf(result, outside);
      const images = result.kind === 'results' ? thumbnailsOf(result.results) : result.kind === 'image' ? [result.image] : [];
      const request = images.length > 0 ? AFTER_PICTURES : AFTER_TEXTS;
      return replyTurn({ text: `Search results: <information>${information}</information>\n${request}`, images }, closed);
    },
  };
}

function informationOf(result: ToolResult, outside: (text: string) => string): string {
  if (result.kind === 'error') return `Error: ${outside(result.message)}`;
  if (result.kind === 'image') return PICTURE;
  const { results } = result;
  if (results.length === 0) return 'No results.';
  const [head, line] = isImageSearch(results)
    ? (['[Image Search Results]', pictureLine] as const)
    : (['[Text Search Results]', (found: SearchResult) => linesOf(found, outside)] as const);
  return `${head}\n${results.map((found, i) => `${i + 1}. ${line(found, outside)}`).join('\n')}\n`;
}

function pictureLine({ title = '', thumbnail }: SearchResult, outside: (text: string) => string): string {
  return thumbnail ? `image: ${PICTURE}\ntitle: ${outside(title)}` : `title: ${outside(title)}`;
}
