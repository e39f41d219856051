// Dialect `mini-o3` (Mini-o3): <think>, <grounding> with a box in 0..1 of the picture it names, crops back as plain text with their number.
// It has no search.
import type { Action, Dialect, ToolResult } from '../../types.js';
import { escapeOutsideText } from '../escape.js';
import { relativeBox } from './boxes.js';
import { chatml, type DialectOptions, PICTURE, replyTurn, systemTurn, userTurn, withoutStop } from './chatml.js';
import { answerRule, firstAction, invalid, numbersOf, parseObject } from './grammar.js';

const CONTINUE =
  'Go on reasoning between <think> and </think>. You may zoom again, into the original picture or into any observation, with <grounding> and </grounding>; once you are sure, put the answer between <answer> and </answer>.';

export function createMiniO3Dialect({ systemPrompt, addedTokens }: DialectOptions): Dialect {
  const outside = (text: string): string => escapeOutsideText(text, addedTokens);
  return {
    ...chatml,
    name: 'mini-o3',
    systemTurn: () => systemTurn(systemPrompt),
    questionTurn: ({ text, images }) => userTurn({ text: `${PICTURE.repeat(images.length)}\n${outside(text)}`, images }),
    wrapReasoning: (text) => `<think>${text}</think>`,
    parseAction: (text, images) =>
      firstAction(withoutStop(text), [answerRule, { tag: 'grounding', read: (body) => grounding(body, images.length) }], () =>
        invalid('neither a complete <answer> nor a complete <grounding>'),
      ),
    observation(result, imageCount, closed) {
      const images = result.kind === 'image' ? [result.image] : [];
      return replyTurn({ text: `${bodyOf(result, imageCount, outside)}\n${CONTINUE}`, images }, closed);
    },
  };
}

/** {"bbox_2d": [x1, y1, x2, y2], "source": "original_image" | "observation_k"}; without a source the original is meant. */
function grounding(body: string, count: number): Action {
  const call = parseObject(body);
  if (call === null) return invalid('grounding is not a JSON object');
  const { source = 'original_image' } = call;
  const index = source === 'original_image' ? 0 : Number(/^observation_(\d+)$/.exec(String(source))?.[1] ?? Number.NaN);
  if (!(index < count)) return invalid(`grounding: no such picture: ${String(source)}`);
  const { box, reason } = relativeBox(numbersOf(call.bbox_2d), 1);
  if (box === null) return invalid(`grounding: ${reason}`);
  return { kind: 'image_zoom_in_tool', box, label: '', imageIndex: index };
}

/** Actions are counted from 0, observations from 1: the question's picture is none. */
function bodyOf(result: ToolResult, imageCount: number, outside: (text: string) => string): string {
  if (result.kind === 'image') {
    return `After action ${imageCount - 1} above, this is the region you asked for (Observation ${imageCount}):\n${PICTURE}.`;
  }
  return result.kind === 'error' ? `Error: ${outside(result.message)}` : 'Error: this format has no search.';
}
