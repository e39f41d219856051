// Soundness of a tokenised library: what would cost tokens for nothing or make a selection mean something else than it seems.
import type { Candidate, Dialect, Tokenizer } from '../types.js';

export interface Finding {
  readonly check: string;
  readonly status: 'pass' | 'warn' | 'fail';
  readonly detail: string;
}

/** All checks, in a fixed order. Blank texts and forbidden tags have been refused when the library was read. */
export function inspectLibrary(candidates: readonly Candidate[], dialect: Dialect, tokenizer: Tokenizer): Finding[] {
  return [
    tokenCounts(candidates),
    sharedPrefix(candidates),
    duplicates(candidates),
    nesting(candidates),
    boundaries(candidates, dialect, tokenizer),
    roundTrip(candidates, dialect, tokenizer),
  ];
}

function tokenCounts(candidates: readonly Candidate[]): Finding {
  const counts = candidates.map(({ ids }) => ids.length);
  const [least, most] = [Math.min(...counts), Math.max(...counts)];
  const total = counts.reduce((sum, count) => sum + count, 0);
  const detail = `${candidates.length} candidates of ${least} to ${most} tokens, ${total} scored per turn`;
  return most > 2 * least
    ? finding('token counts', 'warn', `${detail}; with alpha 1 the mean favours long candidates, keep lengths alike`)
    : finding('token counts', 'pass', detail);
}

/** Tokens that all candidates begin with decide nothing and are scored N times. */
function sharedPrefix(candidates: readonly Candidate[]): Finding {
  const [first] = candidates;
  let shared = 0;
  while (first && shared < first.ids.length && candidates.every(({ ids }) => ids[shared] === first.ids[shared])) shared++;
  const shortest = Math.min(...candidates.map(({ ids }) => ids.length));
  const detail = `${shared} of ${shortest} tokens are the same in all candidates`;
  return finding('shared prefix', candidates.length > 1 && shared > shortest / 2 ? 'warn' : 'pass', detail);
}

function duplicates(candidates: readonly Candidate[]): Finding {
  const seen = new Map<string, string>();
  for (const { id, ids } of candidates) {
    const key = ids.join(' ');
    const twin = seen.get(key);
    if (twin !== undefined) return finding('duplicates', 'fail', `${twin} and ${id} have the same tokens; the first always wins`);
    seen.set(key, id);
  }
  return finding('duplicates', 'pass', 'all candidates differ');
}

/** A candidate that begins with another one whole, delimiters included, cannot be told from it until the other has ended. */
function nesting(candidates: readonly Candidate[]): Finding {
  for (const outer of candidates) {
    const inner = candidates.find(
      ({ id, ids }) => id !== outer.id && ids.length < outer.ids.length && ids.every((token, i) => token === outer.ids[i]),
    );
    if (inner) return finding('nesting', 'warn', `${outer.id} begins with all of ${inner.id}`);
  }
  return finding('nesting', 'pass', 'no candidate begins with another');
}

/**
 * Whether the ids inserted are those the tokenizer would give the same text in place. Where they differ the harness is
 * still right (it never re-encodes), but text-based tools and trainers that do would see other ids.
 */
function boundaries(candidates: readonly Candidate[], dialect: Dialect, tokenizer: Tokenizer): Finding {
  const before = `${dialect.stopToken}\n<|im_start|>assistant\n`;
  const unstable = candidates.filter(({ text, ids }) => {
    const whole = tokenizer.encode(`${before}${dialect.wrapReasoning(text)}<answer>`);
    const start = tokenizer.encode(before).length;
    return !ids.every((id, i) => whole[start + i] === id);
  });
  return unstable.length === 0
    ? finding('boundaries', 'pass', 'tokens stay the same between the assistant prefix and <answer>')
    : finding(
        'boundaries',
        'warn',
        `${unstable.map(({ id }) => id).join(', ')}: re-encoding the history as text would change ids; exchange ids, not text`,
      );
}

function roundTrip(candidates: readonly Candidate[], dialect: Dialect, tokenizer: Tokenizer): Finding {
  const lossy = candidates.filter(({ text, ids }) => tokenizer.decode(ids) !== dialect.wrapReasoning(text));
  return lossy.length === 0
    ? finding('round trip', 'pass', 'every candidate decodes to its text')
    : finding('round trip', 'warn', `${lossy.map(({ id }) => id).join(', ')}: the tokenizer changes the text (normalisation)`);
}

function finding(check: string, status: Finding['status'], detail: string): Finding {
  return { check, status, detail };
}
