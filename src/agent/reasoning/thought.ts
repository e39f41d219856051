// Where written reasoning ends, told from ids: tokens come one at a time and a tag may be spelt by any of them.
import type { Dialect, Tokenizer, TokenLogprob } from '../../types.js';

/** The tags a dialect puts around reasoning. */
export interface ThoughtTags {
  readonly open: string;
  readonly close: string;
}

export function thoughtTags(dialect: Pick<Dialect, 'wrapReasoning'>): ThoughtTags {
  const [open = '', close = ''] = dialect.wrapReasoning('\n').split('\n');
  return { open, close };
}

/** How a stream of tokens divides: the first `length` are z_t, the rest is a_t. */
export interface ThoughtEnd {
  readonly kind: 'closed' | 'absent';
  readonly length: number;
}

/**
 * Watches tokens until the closing tag is complete. A token that ends the tag and already begins the action (`><`) belongs
 * to the action. `absent`: the text does not begin with the opening tag, so there is no thought and everything is the action.
 */
export function createThoughtReader(tokenizer: Tokenizer, { open, close }: ThoughtTags, opened: boolean) {
  const ids: number[] = [];
  let began = opened;
  return (token: Pick<TokenLogprob, 'id'>): ThoughtEnd | null => {
    ids.push(token.id);
    if (!began) {
      const start = tokenizer.decode(ids).trimStart();
      if (start.startsWith(open)) began = true;
      else if (!open.startsWith(start)) return { kind: 'absent', length: 0 };
    }
    // Each token spells at least one byte, so the tag lies within as many tokens as it has characters.
    const tail = tokenizer.decode(ids.slice(-close.length));
    const at = tail.indexOf(close);
    if (at === -1) return null;
    const begunAction = tail.slice(at + close.length).trim() !== '';
    return { kind: 'closed', length: begunAction ? ids.length - 1 : ids.length };
  };
}
