// The model writes an entry of the library token by token. What it wrote stays in the history as it is; the match tells which
// entry it meant and whether it is that entry's text.
import type { Engine, LibraryEntry, Reasoner } from '../../types.js';
import { nearestEntry } from './match.js';
import { type WrittenOptions, writtenReasoner } from './written.js';

export interface AutoregressiveOptions extends WrittenOptions {
  readonly library: readonly LibraryEntry[];
}

export function autoregressiveReasoner(engine: Engine, options: AutoregressiveOptions): Reasoner {
  const { library, tokenizer, tags } = options;
  const written = writtenReasoner('autoregressive', engine, options);
  return {
    ...written,
    async reason(...args) {
      const reasoning = await written.reason(...args);
      return { ...reasoning, match: nearestEntry(thoughtText(tokenizer.decode(reasoning.ids), tags), library) };
    },
  };
}

/** The text between the tags, as far as they are there. */
export function thoughtText(text: string, { open, close }: WrittenOptions['tags']): string {
  const from = text.indexOf(open);
  const inside = from === -1 ? text : text.slice(from + open.length);
  const to = inside.indexOf(close);
  return to === -1 ? inside : inside.slice(0, to);
}
