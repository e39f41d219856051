// Dialect `mars` (SenseNova-MARS): the tools and tags of dialect `ssr`, but the picture before the question, and named search results.
import type { Dialect, SearchResult, Segment, ToolResult } from '../../types.js';
import { escapeOutsideText } from '../escape.js';
import { relativeBox } from './boxes.js';
import { chatml, type DialectOptions, PICTURE, replyTurn, systemTurn, userTurn, withoutStop } from './chatml.js';
import { answerRule, firstAction, type HermesCall, invalid, numbersOf, readHermes, textSearch } from './grammar.js';
import { isImageSearch, linesOf, thumbnailsOf } from './results.js';

export function createMarsDialect({ systemPrompt, addedTokens }: DialectOptions): Dialect {
  const outside = (text: string): string => escapeOutsideText(text, addedTokens);
  return {
    ...chatml,
    name: 'mars',
    systemTurn: () => systemTurn(systemPrompt),
    questionTurn: ({ text, images }) => userTurn({ text: `${PICTURE.repeat(images.length)}${outside(text)}`, images }),
    wrapReasoning: (text) => `<thinking>${text}</thinking>`,
    parseAction: (text, images) =>
      firstAction(
        withoutStop(text),
        [answerRule, { tag: 'tool_call', read: (body) => readHermes(body, (call) => toolCall(call, images.length)) }],
        () => invalid('neither a complete <answer> nor a complete <tool_call>'),
      ),
    observation(result, imageCount, closed) {
      const { text, images } = body(result, imageCount, outside);
      return replyTurn({ text: `<tool_response>\n${text}\n</tool_response>`, images }, closed);
    },
  };
}

/** The three tools that `mars` and `qwen-agent` declare, boxes in thousandths. */
export function toolCall({ name, arguments: args }: HermesCall, count: number) {
  switch (name) {
    case 'image_search_tool':
      return { kind: name } as const;
    case 'text_search_tool':
      return textSearch(args.query);
    case 'image_zoom_in_tool': {
      const { label = '', img_idx: index = 0 } = args;
      if (typeof index !== 'number' || !Number.isInteger(index) || index < 0 || index >= count) {
        return invalid(`tool call ${name}: img_idx ${String(index)} of ${count} images`);
      }
      const { box, reason } = relativeBox(numbersOf(args.bbox_2d), 1000);
      if (box === null) return invalid(`tool call ${name}: ${reason}`);
      return { kind: name, box, label: String(label), imageIndex: index } as const;
    }
    default:
      return invalid(`no such tool: ${name}`);
  }
}

function body(result: ToolResult, imageCount: number, outside: (text: string) => string): Segment {
  switch (result.kind) {
    case 'error':
      return { text: `Error: ${outside(result.message)}`, images: [] };
    case 'image':
      return { text: `Image ${imageCount}: ${PICTURE}`, images: [result.image] };
    case 'results':
      return { text: results(result.results, outside), images: thumbnailsOf(result.results) };
  }
}

function results(found: readonly SearchResult[], outside: (text: string) => string): string {
  if (found.length === 0) return 'No results.';
  if (!isImageSearch(found))
    return `Text Search Results:\n\n${found.map((one, i) => `${i + 1}. ${linesOf(one, outside)}`).join('\n\n')}`;
  // A title without its thumbnail has no thumbnail line, so that later ones keep their numbers.
  const lines = found.map(({ title = '', thumbnail }, i) =>
    [`Title ${i + 1}: ${outside(title)}`, ...(thumbnail ? [`Thumbnail ${i + 1}: ${PICTURE}`] : [])].join('\n'),
  );
  return `Reverse Image Search Results:\n\n${lines.join('\n\n')}`;
}
