"""The policy as one module whose forward gives the log-probs of wanted tokens: what accelerate wraps and shards.

Every use of the model goes through `forward`, so that gradient averaging and parameter gathering happen at its edge.
"""

from __future__ import annotations

import torch
from torch import nn
from transformers import Qwen3VLForConditionalGeneration

from .loss import hidden_states
from .packing import Batch, PackedTurn, Span


class TokenScorer(nn.Module):
    """log p of tokens in packed rows; the vocabulary is computed only where a token is wanted."""

    def __init__(self, model: Qwen3VLForConditionalGeneration) -> None:
        super().__init__()
        self.model = model

    def forward(self, batch: Batch, wanted: list[tuple[int, Span]], temperatures: list[float]) -> list[torch.Tensor]:
        """One tensor [length] per wanted (row, span), at that span's temperature."""
        hidden = hidden_states(self.model, batch)
        device = hidden.device
        sizes = [span.length for _, span in wanted]
        rows = [row for row, span in wanted for _ in range(span.length)]
        predictors = [place for _, span in wanted for place in span.predictors]
        targets = torch.cat([batch.ids[row, span.start : span.start + span.length] for row, span in wanted]).to(device)
        divisors = torch.tensor([t for t, size in zip(temperatures, sizes, strict=True) for _ in range(size)], device=device)
        logits = self.model.lm_head(hidden[rows, predictors]).float() / divisors[:, None]
        log_probs = -nn.functional.cross_entropy(logits, targets, reduction="none")
        return list(log_probs.split(sizes))


def wanted_spans(
    turns: list[list[PackedTurn]], action_temperature: float, selected: bool
) -> tuple[list[tuple[int, Span]], list[float]]:
    """Per turn its packed candidates (temperature 1), then its action; `selected` False where z is part of the action."""
    wanted, temperatures = [], []
    for row, row_turns in enumerate(turns):
        for turn in row_turns:
            candidates = [span for span in turn.candidates if span is not None] if selected else []
            wanted += [(row, span) for span in (*candidates, turn.action)]
            temperatures += [1.0] * len(candidates) + [action_temperature]
    return wanted, temperatures
