// The harness between action and observation: an action stops the trajectory or a tool runs and its result becomes o_t.
import { ToolError, ToolInputError } from '../errors.js';
import type {
  Action,
  Dialect,
  FinishReason,
  Image,
  Observation,
  Span,
  Stop,
  StopStatus,
  Tokenizer,
  Toolbox,
  ToolResult,
} from '../types.js';

/** Either the trajectory stops, or it goes on with an observation. */
export type Step =
  | { readonly stop: Stop; readonly observation: null }
  | { readonly stop: null; readonly observation: Observation };

export interface Harness {
  /** Executes an action; `images` is the registry, the question's picture at index 0. */
  step(action: Action, images: readonly Image[], finish: FinishReason, span: Span, signal?: AbortSignal): Promise<Step>;
}

/** Throws nothing that a tool raises on purpose: a failing tool stops the trajectory with `tool-error`. */
export function createHarness(dialect: Dialect, tokenizer: Tokenizer, tools: Toolbox): Harness {
  return {
    async step(action, images, finish, span, signal) {
      if (action.kind === 'answer') return stopped('answer', null, action.text);
      if (action.kind === 'invalid') {
        const cut = finish === 'length' ? ' (cut at the limit of new tokens)' : '';
        return stopped('invalid-output', action.reason + cut);
      }
      const call = toolCall(action, images, tools, signal);
      if (call === null) return stopped('tool-disabled', `${action.kind} is not available in this run`);
      try {
        const result = await span('tool', () => answeringInputErrors(call));
        const { text, images: added } = dialect.observation(result, images.length, finish === 'stop');
        return { stop: null, observation: { ids: tokenizer.encode(text), images: added, result } };
      } catch (error) {
        if (error instanceof ToolError) return stopped('tool-error', error.message);
        throw error;
      }
    },
  };
}

/** The tool run that an action asks for, or null where the run has no such tool. */
function toolCall(
  action: Exclude<Action, { kind: 'answer' | 'invalid' }>,
  images: readonly Image[],
  tools: Toolbox,
  signal?: AbortSignal,
): (() => Promise<ToolResult>) | null {
  switch (action.kind) {
    case 'text_search_tool': {
      const { textSearch } = tools;
      return textSearch ? async () => ({ kind: 'results', results: await textSearch.search(action.query, signal) }) : null;
    }
    case 'image_search_tool': {
      const { imageSearch } = tools;
      const subject = images[0];
      return imageSearch && subject
        ? async () => ({ kind: 'results', results: await imageSearch.search(subject, signal) })
        : null;
    }
    case 'image_zoom_in_tool': {
      const { crop } = tools;
      const source = images[action.imageIndex];
      return crop && source ? async () => ({ kind: 'image', image: await crop.crop(source, action.box, signal) }) : null;
    }
  }
}

async function answeringInputErrors(call: () => Promise<ToolResult>): Promise<ToolResult> {
  try {
    return await call();
  } catch (error) {
    if (error instanceof ToolInputError) return { kind: 'error', message: error.message };
    throw error;
  }
}

function stopped(status: StopStatus, reason: string | null, answer: string | null = null): Step {
  return { stop: { status, reason, answer }, observation: null };
}
