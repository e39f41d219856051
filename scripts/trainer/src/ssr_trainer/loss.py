"""The SFT loss: L = - sum_t [ lambda * log q(z_t | h_t) + (1 / |a_t|) sum_k log p(a_tk | h_t, z_t, a_t<k) ],

with q = softmax(S / tau) over all candidates and S_i = K_i^-alpha * sum_j log p(r_ij | h_t, r_i<j).

Differences from the paper:
- lambda, tau and alpha of training are not published; they are settings here.
- `candidate_language_model` adds -(1/K) sum_j log p(z_tj) of the gold candidate with a small weight. q does not change if
  all scores shift together, so without it the absolute log-probs sink far below those of fluent text.
- The sum over turns is divided by the number of trajectories in the step.
- q is trained on `branch_turns` turns per trajectory ("one": drawn at random and weighted by the number of turns, an
  unbiased estimate of the sum; "all": each).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from transformers import Qwen3VLForConditionalGeneration

from .packing import Batch, PackedTurn


@dataclass(frozen=True)
class LossSettings:
    tau: float = 0.3
    alpha: float = 1.0
    selection: float = 1.0  # lambda
    candidate_language_model: float = 0.1


@dataclass(frozen=True)
class TurnResult:
    """Scores [N] (None where the turn has no branches), log-probs of the gold candidate [K] and of the action [|a|], and
    whether each action token is the most likely one."""

    scores: torch.Tensor | None
    chosen_log_probs: torch.Tensor
    action_log_probs: torch.Tensor
    action_is_greedy: torch.Tensor
    packed: PackedTurn


def forward_turns(model: Qwen3VLForConditionalGeneration, batch: Batch, alpha: float) -> list[list[TurnResult]]:
    """One pass over the packed rows; the vocabulary is only computed where a token is predicted."""
    hidden = hidden_states(model, batch)
    rows, predictors, targets, sizes = [], [], [], []
    for number, row in enumerate(batch.rows):
        for turn in row.turns:
            for span in (*turn.candidates, turn.action):
                if span is not None:
                    rows += [number] * span.length
                    predictors += span.predictors
                    targets.append(batch.ids[number, span.start : span.start + span.length])
                    sizes.append(span.length)
    target = torch.cat(targets).to(hidden.device)
    logits = model.lm_head(hidden[rows, predictors]).float()
    log_probs = -torch.nn.functional.cross_entropy(logits, target, reduction="none")
    greedy = logits.detach().argmax(-1) == target
    pieces = iter(zip(log_probs.split(sizes), greedy.split(sizes), strict=True))
    return [[_turn_result(turn, pieces, alpha) for turn in row.turns] for row in batch.rows]


def hidden_states(model: Qwen3VLForConditionalGeneration, batch: Batch) -> torch.Tensor:
    """[B, L, hidden] of the last layer, after its norm."""
    device = next(model.parameters()).device
    pixels = None if batch.pixel_values is None else batch.pixel_values.to(device)
    grids = None if batch.grids is None else batch.grids.to(device)
    output = model.model(
        input_ids=batch.ids.to(device),
        position_ids=batch.positions.to(device),
        attention_mask=batch.mask.to(device),
        pixel_values=pixels,
        image_grid_thw=grids,
        use_cache=False,
    )
    return output.last_hidden_state


def score(token_log_probs: torch.Tensor, alpha: float) -> torch.Tensor:
    """S = K^-alpha * sum_j log p(r_j)"""
    return token_log_probs.sum() * len(token_log_probs) ** -alpha


def selection_loss(scores: torch.Tensor, chosen: int, tau: float) -> torch.Tensor:
    """-log q(chosen), q = softmax(scores / tau)"""
    return -torch.log_softmax(scores / tau, dim=0)[chosen]


@dataclass(frozen=True)
class LossParts:
    """Sums over the trajectories of a batch; `total` is what is differentiated."""

    total: torch.Tensor
    selection: float
    action: float
    candidate: float


def sft_loss(results: list[list[TurnResult]], settings: LossSettings) -> LossParts:
    """Sum over trajectories (not yet divided by their number)."""
    selection, action, candidate = (torch.zeros(()) for _ in range(3))
    for turns in results:
        scored = [turn for turn in turns if turn.scores is not None]
        weight = len(turns) / max(1, len(scored))
        for turn in scored:
            selection = selection + weight * selection_loss(turn.scores, turn.packed.chosen, settings.tau)
        for turn in turns:
            action = action - turn.action_log_probs.mean()
            candidate = candidate - turn.chosen_log_probs.mean()
    total = settings.selection * selection + action + settings.candidate_language_model * candidate
    return LossParts(total, float(selection.detach()), float(action.detach()), float(candidate.detach()))


def _turn_result(turn: PackedTurn, pieces: Iterator[tuple[torch.Tensor, torch.Tensor]], alpha: float) -> TurnResult:
    candidates = [next(pieces)[0] if span is not None else None for span in turn.candidates]
    action_log_probs, action_is_greedy = next(pieces)
    chosen = candidates[turn.chosen]
    assert chosen is not None, "the gold candidate is always packed"
    complete = all(candidate is not None for candidate in candidates)
    scores = torch.stack([score(c, alpha) for c in candidates if c is not None]) if complete else None
    return TurnResult(scores, chosen, action_log_probs, action_is_greedy, turn)
