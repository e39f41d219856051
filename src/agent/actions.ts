// The strict action grammar of dialect `ssr`: one answer or one tool call, the whole text, or a reason why not.
import { z } from 'zod';
import type { Action } from '../types.js';

const ANSWER = /^<answer>([\s\S]*)<\/answer>$/;
const TOOL_CALL = /^<tool_call>([\s\S]*)<\/tool_call>$/;
const NESTED = /<\/?(?:answer|tool_call|tool_response|thinking)>/;

const box = z
  .array(z.number().min(0).max(1000))
  .length(4)
  .refine(([x1 = 0, y1 = 0, x2 = 0, y2 = 0]) => x1 < x2 && y1 < y2, 'must have x1 < x2 and y1 < y2');

const toolCall = z.discriminatedUnion('name', [
  z.strictObject({ name: z.literal('image_search_tool'), arguments: z.strictObject({}) }),
  z.strictObject({
    name: z.literal('text_search_tool'),
    arguments: z.strictObject({
      query: z
        .string()
        .max(2000)
        .refine((query) => query.trim() !== '', 'must not be blank'),
    }),
  }),
  z.strictObject({
    name: z.literal('image_zoom_in_tool'),
    arguments: z.strictObject({ bbox_2d: box, label: z.string(), img_idx: z.number().int().min(0) }),
  }),
]);

/** Parses an action from which the stop token has been dropped; `imageCount` bounds img_idx. */
export function parseAction(text: string, imageCount: number): Action {
  const answer = ANSWER.exec(text)?.[1];
  if (answer !== undefined) return parseAnswer(answer);
  const call = TOOL_CALL.exec(text)?.[1];
  if (call !== undefined) return parseToolCall(call, imageCount);
  return invalid('neither one <answer>…</answer> nor one <tool_call>…</tool_call> and nothing else');
}

function parseAnswer(body: string): Action {
  if (body.trim() === '') return invalid('blank answer');
  if (NESTED.test(body)) return invalid('tag inside the answer');
  return { kind: 'answer', text: body.trim() };
}

function parseToolCall(body: string, imageCount: number): Action {
  let json: unknown;
  try {
    json = JSON.parse(body);
  } catch {
    return invalid('tool call is not JSON');
  }
  const parsed = toolCall.safeParse(json);
  if (!parsed.success) return invalid(`tool call: ${firstIssue(parsed.error)}`);
  const call = parsed.data;
  switch (call.name) {
    case 'image_search_tool':
      return { kind: call.name };
    case 'text_search_tool':
      return { kind: call.name, query: call.arguments.query };
    case 'image_zoom_in_tool': {
      const { bbox_2d, label, img_idx } = call.arguments;
      if (img_idx >= imageCount) return invalid(`tool call: img_idx ${img_idx} of ${imageCount} images`);
      return { kind: call.name, box: bbox_2d as [number, number, number, number], label, imageIndex: img_idx };
    }
  }
}

function firstIssue(error: z.ZodError): string {
  const [issue] = error.issues;
  const path = issue?.path.join('.') ?? '';
  return path === '' ? (issue?.message ?? 'malformed') : `${path}: ${issue?.message}`;
}

function invalid(reason: string): Action {
  return { kind: 'invalid', reason };
}
