// The checkpoint's own tokenizer.json: ids in, ids out.
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Tokenizer as HuggingFaceTokenizer } from '@huggingface/tokenizers';
import { DataError } from '../errors.js';
import type { Tokenizer } from '../types.js';

/** Reads `tokenizer.json` of a checkpoint folder; throws DataError when it is missing or no tokenizer. */
export async function loadTokenizer(folder: string): Promise<Tokenizer> {
  const path = join(folder, 'tokenizer.json');
  const source = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new DataError('cannot read the tokenizer', {
      where: path,
      expected: 'a checkpoint folder with a Hugging Face tokenizer.json',
      found: error.code ?? error.message,
      cause: error,
    });
  });
  try {
    return createTokenizer(source);
  } catch (cause) {
    throw new DataError('not a usable tokenizer', {
      where: path,
      expected: 'a Hugging Face tokenizer.json',
      found: cause instanceof Error ? cause.message : String(cause),
      cause,
    });
  }
}

/** A tokenizer from the text of a tokenizer.json. */
export function createTokenizer(source: string): Tokenizer {
  const inner = new HuggingFaceTokenizer(JSON.parse(source), {});
  const addedTokens = [...inner.get_added_tokens_decoder().values()].map(({ content }) => content);
  return {
    addedTokens,
    sha256: createHash('sha256').update(source).digest('hex'),
    encode: (text) => inner.encode(text, { add_special_tokens: false }).ids,
    decode: (ids) =>
      ids.length === 0 ? '' : inner.decode([...ids], { skip_special_tokens: false, clean_up_tokenization_spaces: false }),
    idOf(token) {
      const id = inner.token_to_id(token);
      if (id === undefined) throw new DataError('the tokenizer lacks a token', { where: 'tokenizer.json', expected: token });
      return id;
    },
  };
}
