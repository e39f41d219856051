// A dialect for checkpoints that write their reasoning: the action begins behind a thought that the model closed itself.
import type { Dialect } from '../../types.js';
import { thoughtTags } from '../reasoning/thought.js';

/**
 * The same dialect, but an action may begin with what the closing tag's last token still owes it (`>` of `><answer>`, which
 * is one token) and with white space; an empty one says that the thought was never closed.
 */
export function afterWrittenThought(dialect: Dialect): Dialect {
  const { close } = thoughtTags(dialect);
  return {
    ...dialect,
    parseAction(text, images) {
      if (text === '') return { kind: 'invalid', reason: `the reasoning has no closing ${close}` };
      return dialect.parseAction(withoutTagRest(text, close).trimStart(), images);
    },
  };
}

/** Without a leading end of the closing tag; a whole tag never stands here, since the thought would have ended with it. */
function withoutTagRest(text: string, close: string): string {
  for (let from = 0; from < close.length; from++) {
    if (text.startsWith(close.slice(from))) return text.slice(close.length - from);
  }
  return text;
}
