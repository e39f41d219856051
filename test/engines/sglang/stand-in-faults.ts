// Misbehaviour on demand for the stand-in server, one name a kind of trouble seen on real servers.

export type Fault = {
  /** Requests to this path; /generate unless said otherwise. */
  readonly path?: string;
  /** Matching requests that pass unharmed first, and then how many are hit. */
  readonly after?: number;
  readonly times?: number;
} & (
  | { readonly kind: 'hang' | 'die' | 'drop' | 'abort' | 'cut' }
  | {
      readonly kind: 'status';
      readonly status: number;
      readonly body?: string;
      readonly headers?: Record<string, string>;
      readonly close?: boolean;
    }
  | { readonly kind: 'null-logprob' | 'shifted-ids' | 'row-order' | 'weights' | 'drift' | 'other-output' | 'extra-entry' }
);

/** Counts requests and tells which fault, if any, hits the present one. */
export class FaultPlan {
  readonly #faults: { readonly fault: Fault; seen: number }[] = [];

  add(fault: Fault): void {
    this.#faults.push({ fault, seen: 0 });
  }

  clear(): void {
    this.#faults.length = 0;
  }

  take(path: string): Fault | null {
    for (const entry of this.#faults) {
      const { fault } = entry;
      if ((fault.path ?? '/generate') !== path) continue;
      const at = entry.seen++ - (fault.after ?? 0);
      if (at >= 0 && at < (fault.times ?? Number.POSITIVE_INFINITY)) return fault;
    }
    return null;
  }
}

/** The shape of a reply that faults change. */
export interface Reply {
  text: string;
  output_ids: number[];
  prompt_token_ids?: number[];
  meta_info: {
    finish_reason: Record<string, unknown> | null;
    prompt_tokens: number;
    weight_version: string;
    input_token_logprobs?: [number | null, number, null][];
    output_token_logprobs?: [number | null, number, null][];
    [key: string]: unknown;
  };
}

/** Applies a fault that is visible only in a reply's content. */
export function corrupt(replies: Reply[], fault: Fault): Reply[] {
  const first = replies[0] as Reply;
  const scored = first.meta_info.input_token_logprobs ?? [];
  const written = first.meta_info.output_token_logprobs ?? [];
  switch (fault.kind) {
    case 'abort':
      first.meta_info.finish_reason = { type: 'abort', message: 'Aborted', status_code: null, err_type: null };
      break;
    case 'null-logprob': {
      const entry = scored.at(-1) ?? written.at(-1);
      if (entry) entry[0] = null;
      break;
    }
    case 'shifted-ids':
      for (let i = scored.length - 1; i > 1; i--) (scored[i] as number[])[1] = (scored[i - 1] as number[])[1] as number;
      break;
    case 'extra-entry':
      scored.unshift([null, 0, null]);
      break;
    case 'row-order':
      return [...replies].reverse();
    case 'weights':
      (replies.at(-1) as Reply).meta_info.weight_version = 'another';
      break;
    case 'drift':
      for (const reply of replies) reply.meta_info.prompt_tokens -= 2;
      break;
    case 'other-output':
      first.output_ids[0] = ((first.output_ids[0] as number) + 1) % 100;
      break;
  }
  return replies;
}
