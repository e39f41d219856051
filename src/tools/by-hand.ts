// Trying a tool without a model: the result as the harness would get it, and as a record without picture bytes.
import { ToolInputError, UsageError } from '../errors.js';
import type { Image, Toolbox, ToolResult } from '../types.js';
import type { Box } from './box.js';

export type ToolRequest =
  | { readonly kind: 'text'; readonly query: string }
  | { readonly kind: 'image'; readonly image: Image }
  | { readonly kind: 'crop'; readonly image: Image; readonly box: Box };

/** What the model would be told, mistakes included. Throws UsageError for a tool that is absent, ToolError for one that fails. */
export async function tryTool(toolbox: Toolbox, request: ToolRequest, signal?: AbortSignal): Promise<ToolResult> {
  try {
    switch (request.kind) {
      case 'text':
        return { kind: 'results', results: await present(toolbox.textSearch, 'text search').search(request.query, signal) };
      case 'image':
        return { kind: 'results', results: await present(toolbox.imageSearch, 'image search').search(request.image, signal) };
      case 'crop':
        return { kind: 'image', image: await present(toolbox.crop, 'crop').crop(request.image, request.box, signal) };
    }
  } catch (error) {
    if (error instanceof ToolInputError) return { kind: 'error', message: error.message };
    throw error;
  }
}

/** JSON-ready: pictures by hash, type and size. */
export function recordOf(result: ToolResult): unknown {
  if (result.kind === 'image') return { kind: 'image', image: pictureOf(result.image) };
  if (result.kind === 'error') return result;
  return {
    kind: 'results',
    results: result.results.map(({ thumbnail, ...rest }) => ({ ...rest, ...(thumbnail && { thumbnail: pictureOf(thumbnail) }) })),
  };
}

function pictureOf({ sha256, mediaType, width, height }: Image) {
  return { sha256, mediaType, width, height };
}

function present<T>(tool: T | undefined, name: string): T {
  if (tool !== undefined) return tool;
  throw new UsageError(`there is no ${name}`, { remedy: 'Name a provider.' });
}
