// What all dialects of Qwen checkpoints share: ChatML turns, the place of a picture, and the tokens no action may spell.
import type { ImageGeometry, Segment } from '../../types.js';

export const END = '<|im_end|>';
export const PICTURE = '<|vision_start|><|image_pad|><|vision_end|>';
const ASSISTANT = '<|im_start|>assistant\n';

export const chatml = {
  stopToken: END,
  visionTokens: ['<|vision_start|>', '<|vision_end|>', '<|image_pad|>', '<|video_pad|>'],
} as const;

export interface DialectOptions {
  /** The rendered system prompt. */
  readonly systemPrompt: string;
  /** The tokenizer's, which outside text may never spell. */
  readonly addedTokens: readonly string[];
  /** How the engine resizes pictures; asked for when the first box in pixels is read, since the engine starts last. */
  readonly geometry: () => ImageGeometry;
}

export function systemTurn(prompt: string): string {
  return `<|im_start|>system\n${prompt}${END}\n`;
}

/** A user turn and the assistant's prefix behind it. */
export function userTurn({ text, images }: Segment): Segment {
  return { text: `<|im_start|>user\n${text}${END}\n${ASSISTANT}`, images };
}

/** An observation as a user turn, behind an action that may lack its stop token. */
export function replyTurn({ text, images }: Segment, closed: boolean): Segment {
  return { text: `${closed ? '' : END}\n<|im_start|>user\n${text}${END}\n${ASSISTANT}`, images };
}

/** The action's text without the stop token. */
export function withoutStop(text: string): string {
  return text.endsWith(END) ? text.slice(0, -END.length) : text;
}
