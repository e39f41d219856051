// Reading actions of checkpoints that this project did not train: the first complete action counts, and what stands behind it is
// ignored, since a checkpoint that runs on invents the result itself.
import type { Action } from '../../types.js';

/** A tagged action and how its inside is read. */
export interface ActionRule {
  /** Without brackets: `tool_call` for <tool_call>…</tool_call>. */
  readonly tag: string;
  readonly read: (body: string) => Action;
}

/** The action whose closing tag comes first; `otherwise` where none is complete. */
export function firstAction(text: string, rules: readonly ActionRule[], otherwise: (text: string) => Action): Action {
  const found = rules.flatMap(({ tag, read }) => {
    const match = new RegExp(`<${tag}>([\\s\\S]*?)</${tag}>`).exec(text);
    return match ? [{ end: match.index + match[0].length, body: match[1] ?? '', read }] : [];
  });
  const [first] = found.sort((a, b) => a.end - b.end);
  return first ? first.read(first.body) : otherwise(text);
}

export const answerRule: ActionRule = {
  tag: 'answer',
  read: (body) => (body.trim() === '' ? invalid('blank answer') : { kind: 'answer', text: body.trim() }),
};

export function textSearch(query: unknown): Action {
  if (typeof query !== 'string') return invalid('a text search needs a query');
  const text = query.trim();
  return text === '' ? invalid('blank query') : { kind: 'text_search_tool', query: text.slice(0, 2000) };
}

export function invalid(reason: string): Action {
  return { kind: 'invalid', reason };
}

/** Hermes: {"name": …, "arguments": {…}}, the arguments an object or, as some write them, its JSON in a string. */
export type HermesCall = { readonly name: string; readonly arguments: Readonly<Record<string, unknown>> };

export function readHermes(body: string, use: (call: HermesCall) => Action): Action {
  const call = parseObject(body);
  if (call === null) return invalid('tool call is not a JSON object');
  const { name, arguments: given = {} } = call;
  const args = typeof given === 'string' ? parseObject(given) : isObject(given) ? given : null;
  if (typeof name !== 'string') return invalid('tool call without a name');
  return args === null ? invalid(`tool call ${name}: arguments are no object`) : use({ name, arguments: args });
}

/** JSON of an object, or null. */
export function parseObject(text: string): Readonly<Record<string, unknown>> | null {
  try {
    const json: unknown = JSON.parse(text);
    return isObject(json) ? json : null;
  } catch {
    return null;
  }
}

export function numbersOf(value: unknown): number[] {
  return Array.isArray(value) ? value.map((entry) => (typeof entry === 'number' ? entry : Number.NaN)) : [];
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
