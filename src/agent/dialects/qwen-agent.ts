// Dialect `qwen-agent` (Qwen3-VL in Qwen-Agent): Hermes calls, boxes in thousandths, results as tool responses; a message that calls no
// tool is the answer, with or without answer tags.
import type { Dialect, SearchResult, ToolResult } from '../../types.js';
import { escapeOutsideText } from '../escape.js';
import { chatml, type DialectOptions, PICTURE, replyTurn, systemTurn, userTurn, withoutStop } from './chatml.js';
import { answerRule, firstAction, invalid, readHermes } from './grammar.js';
import { toolCall } from './mars.js';
import { linesOf, thumbnailsOf } from './results.js';

export function createQwenAgentDialect({ systemPrompt, addedTokens }: DialectOptions): Dialect {
  const outside = (text: string): string => escapeOutsideText(text, addedTokens);
  return {
    ...chatml,
    name: 'qwen-agent',
    systemTurn: () => systemTurn(systemPrompt),
    questionTurn: ({ text, images }) => userTurn({ text: `${PICTURE.repeat(images.length)}${outside(text)}`, images }),
    wrapReasoning: (text) => `<think>${text}</think>`,
    parseAction: (text, images) =>
      firstAction(
        withoutStop(text),
        [answerRule, { tag: 'tool_call', read: (body) => readHermes(body, (call) => toolCall(call, images.length)) }],
        (rest) => (rest.includes('<tool_call>') ? invalid('the tool call is not complete') : answerRule.read(rest)),
      ),
    observation(result, imageCount, closed) {
      const images = result.kind === 'results' ? thumbnailsOf(result.results) : result.kind === 'image' ? [result.image] : [];
      const text = `<tool_response>\n${bodyOf(result, imageCount, outside)}\n</tool_response>`;
      return replyTurn({ text, images }, closed);
    },
  };
}

function bodyOf(result: ToolResult, imageCount: number, outside: (text: string) => string): string {
  if (result.kind === 'error') return `Error: ${outside(result.message)}`;
  if (result.kind === 'image') return `Image ${imageCount}: ${PICTURE}`;
  const line = (found: SearchResult): string => `${found.thumbnail ? `${PICTURE} ` : ''}${linesOf(found, outside)}`;
  return result.results.map((found, i) => `${i + 1}. ${line(found)}`).join('\n') || 'No results.';
}
