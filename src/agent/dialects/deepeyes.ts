// Dialect `deepeyes` (DeepEyes): <think>, Hermes calls of one crop tool, boxes in pixels of the picture as the model sees it, always of
// the question's picture. The request stands in the user's turn and comes back with every crop. It has no search.
import type { Size } from '../../media/geometry.js';
import type { Action, Dialect, ToolResult } from '../../types.js';
import { escapeOutsideText } from '../escape.js';
import { pixelBox } from './boxes.js';
import { chatml, type DialectOptions, PICTURE, replyTurn, systemTurn, userTurn, withoutStop } from './chatml.js';
import { answerRule, firstAction, type HermesCall, invalid, numbersOf, readHermes } from './grammar.js';

const REQUEST =
  '\nThink first, zoom in with image_zoom_in_tool where you must, then answer. Keep to this form: <think>…</think>, then <tool_call>…</tool_call> or <answer>…</answer>.';

export function createDeepeyesDialect({ systemPrompt, addedTokens, geometry }: DialectOptions): Dialect {
  const outside = (text: string): string => escapeOutsideText(text, addedTokens);
  const zoom = ({ name, arguments: args }: HermesCall, pictures: readonly Size[]): Action => {
    if (name !== 'image_zoom_in_tool') return invalid(`no such tool: ${name}`);
    const { box, reason } = pixelBox(numbersOf(args.bbox_2d ?? args.bbox), pictures, 0, geometry());
    if (box === null) return invalid(`tool call ${name}: ${reason}`);
    return { kind: name, box, label: String(args.label ?? ''), imageIndex: 0 };
  };
  return {
    ...chatml,
    name: 'deepeyes',
    systemTurn: () => systemTurn(systemPrompt),
    questionTurn: ({ text, images }) =>
      userTurn({ text: `${`${PICTURE}\n`.repeat(images.length)}${outside(text)}${REQUEST}`, images }),
    wrapReasoning: (text) => `<think>${text}</think>`,
    parseAction: (text, images) =>
      firstAction(
        withoutStop(text),
        [answerRule, { tag: 'tool_call', read: (body) => readHermes(body, (call) => zoom(call, images)) }],
        () => invalid('neither a complete <answer> nor a complete <tool_call>'),
      ),
    observation(result, _imageCount, closed) {
      const images = result.kind === 'image' ? [result.image] : [];
      return replyTurn({ text: `<tool_response>${bodyOf(result, outside)}${REQUEST}</tool_response>`, images }, closed);
    },
  };
}

function bodyOf(result: ToolResult, outside: (text: string) => string): string {
  if (result.kind === 'image') return PICTURE;
  return result.kind === 'error' ? `Error: ${outside(result.message)}` : 'Error: this format has no search.';
}
