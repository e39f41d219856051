// The distribution over the next token, from normalised hidden states: ln p(id) = logit_id - ln Σ exp(logit).
import type { Sampling, TokenLogprob } from '../../types.js';
import type { Kernels, Pointer } from './kernels.js';
import { drawToken } from './sampler.js';
import type { TextModel } from './text-model.js';

/** Logits are made for at most this many rows at once. */
const ROWS_AT_ONCE = 32;

export class NextToken {
  readonly #text: TextModel;
  readonly #kernels: Kernels;
  readonly #hiddenSize: number;
  readonly #vocabularySize: number;
  readonly #input: Pointer;

  constructor(text: TextModel, kernels: Kernels, hiddenSize: number, vocabularySize: number) {
    this.#text = text;
    this.#kernels = kernels;
    this.#hiddenSize = hiddenSize;
    this.#vocabularySize = vocabularySize;
    this.#input = kernels.memory.allocate(hiddenSize * 4);
  }

  /** ln p of each id as the token after one hidden state. */
  logprobs(hidden: Float32Array, ids: readonly number[]): number[] {
    const logits = this.#logitsOf(hidden);
    const normaliser = this.#logNormaliser(logits, 1);
    const values = this.#values(logits);
    return ids.map((id) => (values[id] ?? Number.NaN) - normaliser);
  }

  /** ln p of tokens[1], tokens[2], … from the rows of hidden states of tokens[0], tokens[1], …. */
  logprobsAlong(hidden: Pointer, tokens: readonly number[]): number[] {
    const logprobs: number[] = [];
    for (let row = 0; row < tokens.length - 1; row += ROWS_AT_ONCE) {
      const rows = Math.min(ROWS_AT_ONCE, tokens.length - 1 - row);
      const logits = this.#text.logits(hidden + row * this.#hiddenSize * 4, rows);
      for (let i = 0; i < rows; i++) {
        const line = logits + i * this.#text.logitsStride * 4;
        const logit = this.#values(line)[tokens[row + i + 1] ?? 0] ?? Number.NaN;
        logprobs.push(logit - this.#logNormaliser(line, 1));
      }
    }
    return logprobs;
  }

  draw(hidden: Float32Array, sampling: Sampling, random: () => number): TokenLogprob {
    const logits = this.#logitsOf(hidden);
    return drawToken(this.#values(logits), sampling, (temperature) => this.#logNormaliser(logits, temperature), random);
  }

  #logitsOf(hidden: Float32Array): Pointer {
    this.#kernels.memory.floats(this.#input, this.#hiddenSize).set(hidden);
    return this.#text.logits(this.#input, 1);
  }

  #values(logits: Pointer): Float32Array {
    return this.#kernels.memory.floats(logits, this.#vocabularySize);
  }

  /** ln Σ exp(logit / T) over the vocabulary. */
  #logNormaliser(logits: Pointer, temperature: number): number {
    const { run } = this.#kernels;
    const peak = run.maximum(logits, this.#vocabularySize);
    return peak / temperature + Math.log(run.sumExp(logits, this.#vocabularySize, peak, 1 / temperature));
  }
}
