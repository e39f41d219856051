"""SGLang's attention on a CPU without the work that no GPU kernel does; off unless SSR_LEAN_ATTENTION is set.

The released torch_native backend extends a row by building queries for its *whole* history, most of them empty, and throws those
results away: O(L^2) for K new tokens behind L cached ones. `short` computes the K new queries only. `shared` also gathers the keys of
a prefix that all rows of a batch share once, and attends with one mask, in which each row sees the prefix and itself. Both compute in
float32, stack the query heads of a key head, and plan a batch once for all layers. SSR_LEAN_ATTENTION_THREADS (1) is the number of
torch threads of this attention alone, where it is large enough to share out (set OMP_WAIT_POLICY=PASSIVE with it: threads that wait
by spinning take the core of the server's other processes). Decoding is left as it is: it already computes one query per row, and a single row shares nothing.
"""

import os

import torch
from torch.nn.functional import scaled_dot_product_attention

LARGE = 2**16  # pairs of a query and a key, below which a second thread costs more than it computes
KEPT = 2**21  # the same, above which a plan is made for each layer


def apply(backend_class, mode):
    released = backend_class._run_sdpa_forward_extend
    threads = int(os.environ.get("SSR_LEAN_ATTENTION_THREADS", "1"))
    kept = ((), [])  # the last batch, and its plan; every layer of a forward pass is given the same tensors

    def extend(self, query, output, k_cache, v_cache, req_to_token, req_pool_indices, seq_lens, extend_prefix_lens, extend_seq_lens,
               encoder_lens=None, scaling=None, enable_gqa=False, causal=False, is_cross_attn=False, sliding_window_size=None):  # fmt: skip
        nonlocal kept
        windowed = sliding_window_size is not None and sliding_window_size > -1
        if not causal or is_cross_attn or encoder_lens is not None or windowed:
            return released(self, query, output, k_cache, v_cache, req_to_token, req_pool_indices, seq_lens, extend_prefix_lens,
                            extend_seq_lens, encoder_lens, scaling, enable_gqa, causal, is_cross_attn, sliding_window_size)  # fmt: skip
        batch = (req_to_token, req_pool_indices, seq_lens, extend_prefix_lens)
        plan = kept[1]
        if len(kept[0]) != len(batch) or any(old is not new for old, new in zip(kept[0], batch, strict=True)):
            plan = _plan(*batch, share=mode == "shared", stacked=query.shape[1] // k_cache.shape[1])
            # The mask of a long prompt is not kept: the next call would pay for giving its memory back.
            kept = (batch, plan) if sum(mask.numel() for _, _, mask in plan) <= KEPT else ((), [])
        before = torch.get_num_threads()
        for part, keys, mask in plan:
            torch.set_num_threads(threads if mask.numel() >= LARGE else 1)
            output[part] = _attend(query[part], k_cache[keys], v_cache[keys], mask, scaling)
        torch.set_num_threads(before)
        return output

    backend_class._run_sdpa_forward_extend = extend


def _plan(req_to_token, req_pool_indices, seq_lens, extend_prefix_lens, share, stacked):
    """Per group of rows: its slice of the queries, the cache slots of its keys, and its mask, once per stacked query head."""
    slots = [req_to_token[pool, :length] for pool, length in zip(req_pool_indices, seq_lens.tolist(), strict=True)]
    prefixes = extend_prefix_lens.tolist()
    plan, start = [], 0
    for rows in _groups(slots, prefixes) if share else [[row] for row in range(len(slots))]:
        prefix = prefixes[rows[0]]
        lengths = [len(slots[row]) - prefix for row in rows]
        keys = torch.cat([slots[rows[0]][:prefix], *(slots[row][prefix:] for row in rows)])
        plan.append((slice(start, start + sum(lengths)), keys, _mask(prefix, lengths).repeat(stacked, 1)))
        start += sum(lengths)
    return plan


def _groups(slots, prefixes):
    """Neighbouring rows with the same prefix in the same cache slots."""
    groups = []
    for row, (slot, prefix) in enumerate(zip(slots, prefixes, strict=True)):
        first = groups[-1][0] if groups else None
        if first is not None and prefixes[first] == prefix and torch.equal(slots[first][:prefix], slot[:prefix]):
            groups[-1].append(row)
        else:
            groups.append([row])
    return groups


def _mask(prefix, lengths):
    """[sum of lengths, prefix + sum of lengths], added to the logits: a row sees the prefix, and its own tokens up to the query's."""
    own = torch.block_diag(*(torch.ones(length, length).tril() for length in lengths)).bool()
    hidden = torch.cat([torch.zeros(own.shape[0], prefix, dtype=torch.bool), ~own], dim=1)
    return torch.zeros(hidden.shape).masked_fill(hidden, float("-inf"))


def _attend(query, keys, values, mask, scaling):
    """query [n, heads, d]; keys, values [m, key heads, d]; the heads that share a key head become rows of one product."""
    n, heads, d = query.shape
    shared = keys.shape[1]
    q = query.float().view(n, shared, heads // shared, d).permute(1, 2, 0, 3).reshape(1, shared, -1, d)
    k, v = (tensor.float().movedim(0, 1).unsqueeze(0) for tensor in (keys, values))
    result = scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scaling)
    return result.view(shared, heads // shared, n, d).permute(2, 0, 1, 3).reshape(n, heads, d).to(query.dtype)
