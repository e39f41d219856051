// Dialect `ssr` (method.md section 3): ChatML turns, <thinking> around reasoning, <answer> or <tool_call> as the action.
import type { Dialect, SearchResult, Segment, ToolResult } from '../../types.js';
import { parseAction } from '../actions.js';
import { escapeOutsideText } from '../escape.js';

const END = '<|im_end|>';
const PICTURE = '<|vision_start|><|image_pad|><|vision_end|>';
const ASSISTANT = '<|im_start|>assistant\n';

/** `systemPrompt` is the rendered prompt; `addedTokens` are the tokenizer's, which outside text may never spell. */
export function createSsrDialect(systemPrompt: string, addedTokens: readonly string[]): Dialect {
  const outside = (text: string): string => escapeOutsideText(text, addedTokens);
  return {
    name: 'ssr',
    stopToken: END,
    visionTokens: ['<|vision_start|>', '<|vision_end|>', '<|image_pad|>', '<|video_pad|>'],
    systemTurn: () => `<|im_start|>system\n${systemPrompt}${END}\n`,
    questionTurn: ({ text, images }) => ({
      text: `<|im_start|>user\n${outside(text)}\n${PICTURE.repeat(images.length)}${END}\n${ASSISTANT}`,
      images,
    }),
    wrapReasoning: (text) => `<thinking>${text}</thinking>`,
    parseAction: (text, images) => parseAction(text.endsWith(END) ? text.slice(0, -END.length) : text, images.length),
    observation(result, imageCount, closed) {
      const body = observationBody(result, imageCount, outside);
      return {
        text: `${closed ? '' : END}\n<|im_start|>user\n<tool_response>\n${body.text}\n</tool_response>${END}\n${ASSISTANT}`,
        images: body.images,
      };
    },
  };
}

function observationBody(result: ToolResult, imageCount: number, outside: (text: string) => string): Segment {
  switch (result.kind) {
    case 'error':
      return { text: `Error: ${outside(result.message)}`, images: [] };
    case 'image':
      return { text: `Image ${imageCount}: ${PICTURE}`, images: [result.image] };
    case 'results':
      return {
        text: result.results.map((found, i) => `${i + 1}. ${resultLine(found, outside)}`).join('\n') || 'No results.',
        images: result.results.flatMap(({ thumbnail }) => thumbnail ?? []),
      };
  }
}

/** Title, text and address on one line each, the thumbnail behind the title that it shows. */
function resultLine({ title, text, url, thumbnail }: SearchResult, outside: (text: string) => string): string {
  const head = [title === undefined ? '' : outside(title), thumbnail ? PICTURE : ''].filter((part) => part !== '').join(' ');
  const rest = [text, url].flatMap((part) => (part === undefined ? [] : outside(part)));
  return [head, ...rest].filter((part) => part !== '').join('\n');
}
