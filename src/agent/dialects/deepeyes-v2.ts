// Dialect `deepeyes-v2` (DeepEyesV2): <think>, Hermes calls of two searches (the one by picture without arguments), and Python between
// <code> tags, which this harness does not execute: such an action is refused by name and ends the trajectory.
import type { Action, Dialect, SearchResult, ToolResult } from '../../types.js';
import { escapeOutsideText } from '../escape.js';
import { chatml, type DialectOptions, PICTURE, replyTurn, systemTurn, userTurn, withoutStop } from './chatml.js';
import { answerRule, firstAction, type HermesCall, invalid, readHermes, textSearch } from './grammar.js';
import { isImageSearch, thumbnailsOf } from './results.js';

export const CODE_REFUSED = 'the model wrote code to execute, and this harness does not execute code';

const REQUEST =
  '\n\nReason step by step and put the answer between <answer> and </answer>. Keep to this form: <think>…</think>, then <tool_call>…</tool_call> or <answer>…</answer>.';

export function createDeepeyesV2Dialect({ systemPrompt, addedTokens }: DialectOptions): Dialect {
  const outside = (text: string): string => escapeOutsideText(text, addedTokens);
  return {
    ...chatml,
    name: 'deepeyes-v2',
    systemTurn: () => systemTurn(systemPrompt),
    questionTurn: ({ text, images }) =>
      userTurn({ text: `${`${PICTURE}\n`.repeat(images.length)}${outside(text)}${REQUEST}`, images }),
    wrapReasoning: (text) => `<think>${text}</think>`,
    parseAction: (text) =>
      firstAction(
        withoutStop(text),
        [
          answerRule,
          { tag: 'tool_call', read: (body) => readHermes(body, search) },
          { tag: 'code', read: () => invalid(CODE_REFUSED) },
        ],
        () => invalid('no complete <answer>, <tool_call> or <code>'),
      ),
    observation(result, _imageCount, closed) {
      const images = result.kind === 'results' ? thumbnailsOf(result.results) : result.kind === 'image' ? [result.image] : [];
      return replyTurn({ text: `<tool_response>\n${bodyOf(result, outside)}\n</tool_response>\n`, images }, closed);
    },
  };
}

function search({ name, arguments: { query } }: HermesCall): Action {
  switch (name) {
    case 'image_search':
      return { kind: 'image_search_tool' };
    case 'search':
      // Its schema speaks of a list of queries and shows one; a list of one is that one.
      return textSearch(Array.isArray(query) && query.length === 1 ? query[0] : query);
    default:
      return invalid(`no such tool: ${name}`);
  }
}

function bodyOf(result: ToolResult, outside: (text: string) => string): string {
  if (result.kind === 'error') return `Error: ${outside(result.message)}`;
  if (result.kind === 'image') return PICTURE;
  const { results } = result;
  if (results.length === 0) return 'No results. Try another query, or answer.';
  const line = isImageSearch(results) ? pictureLine : textLine;
  return `${results.length} results:\n\n## Web Results\n${results.map((found, i) => `${i + 1}. ${line(found, outside)}`).join('\n\n')}`;
}

function pictureLine({ title = '', thumbnail }: SearchResult, outside: (text: string) => string): string {
  return `${thumbnail ? `${PICTURE}\n` : ''}[${outside(title)}]`;
}

function textLine({ title, text = '', url }: SearchResult, outside: (text: string) => string): string {
  const head = title === undefined && url === undefined ? '' : `[${outside(title ?? '')}](${outside(url ?? '')})\n`;
  return `${head}${outside(text)}`;
}
