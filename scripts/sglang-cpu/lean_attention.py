"""SGLang's attention on a CPU without the work that no GPU kernel does; off unless SSR_LEAN_ATTENTION is set.

The released torch_native backend extends a row by building queries for its *whole* history, most of them empty, and throws those
results away: O(L^2) for K new tokens behind L cached ones. `short` computes the K new queries only. `shared` also gathers the keys of
a prefix that all rows of a batch share once, and attends with one mask, in which each row sees the prefix and itself.
Decoding is left as it is: it already computes one query per row, and a single row shares nothing.
"""

import torch
from torch.nn.functional import scaled_dot_product_attention


def apply(backend_class, mode):
    released = backend_class._run_sdpa_forward_extend

    def extend(self, query, output, k_cache, v_cache, req_to_token, req_pool_indices, seq_lens, extend_prefix_lens, extend_seq_lens,
               encoder_lens=None, scaling=None, enable_gqa=False, causal=False, is_cross_attn=False, sliding_window_size=None):  # fmt: skip
        windowed = sliding_window_size is not None and sliding_window_size > -1
        if not causal or is_cross_attn or encoder_lens is not None or windowed:
            return released(self, query, output, k_cache, v_cache, req_to_token, req_pool_indices, seq_lens, extend_prefix_lens,
                            extend_seq_lens, encoder_lens, scaling, enable_gqa, causal, is_cross_attn, sliding_window_size)  # fmt: skip
        slots = [req_to_token[pool, :length] for pool, length in zip(req_pool_indices, seq_lens.tolist(), strict=True)]
        prefixes = extend_prefix_lens.tolist()
        for rows in _groups(slots, prefixes) if mode == "shared" else [[row] for row in range(len(slots))]:
            prefix = prefixes[rows[0]]
            lengths = [len(slots[row]) - prefix for row in rows]
            keys = torch.cat([slots[rows[0]][:prefix], *(slots[row][prefix:] for row in rows)])
            start = sum(len(slots[row]) - prefixes[row] for row in range(rows[0]))
            part = slice(start, start + sum(lengths))
            output[part] = _attend(query[part], k_cache[keys], v_cache[keys], _mask(prefix, lengths), scaling, enable_gqa)
        return output

    backend_class._run_sdpa_forward_extend = extend


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
    """[sum of lengths, prefix + sum of lengths]: the prefix, and the row's own tokens up to the query's."""
    own = torch.block_diag(*(torch.ones(length, length, dtype=torch.bool).tril() for length in lengths)).bool()
    return torch.cat([torch.ones(own.shape[0], prefix, dtype=torch.bool), own], dim=1)


def _attend(query, keys, values, mask, scaling, enable_gqa):
    q, k, v = (tensor.movedim(0, 1).unsqueeze(0) for tensor in (query, keys.to(query.dtype), values.to(query.dtype)))
    return scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scaling, enable_gqa=enable_gqa).squeeze(0).movedim(1, 0)
