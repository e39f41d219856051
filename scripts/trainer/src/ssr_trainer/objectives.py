"""The objective of Algorithm 2 on token log-probs; train_rl.py lists what the paper leaves open.

    A      = (R - mean R) / max(population std R, delta)                       within the group of one question
    s      = K^-alpha * sum_j log p(z_j)                                       current weights, carries the gradient
    log q  = s/tau - logsumexp(rollout's S/tau with the selected entry replaced by s/tau)
    rho_z  = exp(log q - logged log q)                                         one scalar per turn
    rho_k  = exp(log p(a_k) - logged log p(a_k))                               per action token
    J      = sum_t [ gamma * f(rho_z, A) + sum_k f(rho_k, A) ]
    loss   = - J / trajectories + beta * KL(action tokens) / trajectories
    f      : grpo  min(rho A, clip(rho, 1 - low, 1 + high) A)
             gspo  the same, with rho_k replaced by the trajectory's exp(mean_k log rho_k)
             sapo  4/c * sigmoid(c (rho - 1)) * A,  c = sapo_positive if A > 0 else sapo_negative
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np
import torch

Objective = Literal["grpo", "gspo", "sapo"]


@dataclass(frozen=True)
class ObjectiveSettings:
    objective: Objective = "grpo"
    gamma: float = 1.0
    beta: float = 0.0
    clip_low: float = 0.2
    clip_high: float = 0.2
    advantage_floor: float = 1e-6  # delta
    sapo_positive: float = 1.0
    sapo_negative: float = 1.05

    def __post_init__(self) -> None:
        if self.objective not in get_args(Objective):
            raise ValueError(f"expected an objective of {', '.join(get_args(Objective))}, got {self.objective!r}")


@dataclass(frozen=True)
class TurnLogProbs:
    """Current log-probs (with gradients) beside the rollout's. `reasoning` [K] is None where the model wrote z itself: its
    tokens then stand at the front of `action`. `scores` [N] are the competitors', without gradients."""

    action: torch.Tensor
    logged_action: torch.Tensor
    reference_action: torch.Tensor | None = None
    reasoning: torch.Tensor | None = None
    scores: torch.Tensor | None = None
    index: int = -1
    logged_log_q: float = 0.0


@dataclass
class Statistics:
    """Sums over a minibatch; `ratios` are kept to say how many were clipped and how far they strayed from 1."""

    turns: int = 0
    tokens: int = 0
    clipped: int = 0
    ratios: int = 0
    largest_ratio_gap: float = 0.0
    kl: float = 0.0
    negative_log_prob: float = 0.0
    score_gaps: list[float] = field(default_factory=list)


def advantages(rewards: list[float | None], groups: list[str], floor: float) -> tuple[np.ndarray, int]:
    """One advantage per trajectory (0 for masked ones) and the number of groups without spread, which contribute nothing."""
    members: dict[str, list[int]] = defaultdict(list)
    for position, (reward, group) in enumerate(zip(rewards, groups, strict=True)):
        if reward is not None:
            members[group].append(position)
    values, flat = np.zeros(len(rewards)), 0
    for positions in members.values():
        own = np.array([rewards[position] for position in positions], np.float64)
        deviation = own.std()
        flat += bool(np.ptp(own) == 0)
        if np.ptp(own) > 0:
            values[positions] = (own - own.mean()) / max(deviation, floor)
    return values, flat


def selection_log_prob(reasoning: torch.Tensor, scores: torch.Tensor, index: int, alpha: float, tau: float) -> torch.Tensor:
    """log q of the selected candidate: its current score among the competitors' detached ones."""
    selected = reasoning.sum() * len(reasoning) ** -alpha / tau
    logits = (scores.detach().to(selected.dtype) / tau).index_put((torch.tensor(index, device=selected.device),), selected)
    return selected - torch.logsumexp(logits, dim=0)


def surrogate(ratio: torch.Tensor, advantage: float, settings: ObjectiveSettings) -> torch.Tensor:
    """f(rho, A), elementwise."""
    if settings.objective == "sapo":
        slope = settings.sapo_positive if advantage > 0 else settings.sapo_negative
        return 4 / slope * torch.sigmoid(slope * (ratio - 1)) * advantage
    clipped = ratio.clamp(1 - settings.clip_low, 1 + settings.clip_high)
    return torch.minimum(ratio * advantage, clipped * advantage)


def kl_to_reference(current: torch.Tensor, reference: torch.Tensor) -> torch.Tensor:
    """Non-negative unbiased estimate per token: r - log r - 1 with r = p_reference / p_current."""
    gap = reference - current
    return torch.exp(gap) - gap - 1


def trajectory_loss(
    turns: list[TurnLogProbs],
    advantage: float,
    alpha: float,
    tau: float,
    settings: ObjectiveSettings,
    statistics: Statistics,
) -> torch.Tensor:
    """- J + beta * KL of one trajectory, not yet divided by the number of trajectories."""
    action_log_ratios = [turn.action - turn.logged_action for turn in turns]
    action_ratios = _action_ratios(action_log_ratios, settings.objective)
    total = turns[0].action.new_zeros(())
    for turn, ratios in zip(turns, action_ratios, strict=True):
        total = total + surrogate(ratios, advantage, settings).sum()
        _count(statistics, ratios, advantage, settings)
        if turn.reasoning is not None:
            assert turn.scores is not None, "a selected turn has its competitors' scores"
            log_q = selection_log_prob(turn.reasoning, turn.scores, turn.index, alpha, tau)
            ratio = torch.exp(log_q - turn.logged_log_q)
            total = total + settings.gamma * surrogate(ratio, advantage, settings)
            _count(statistics, ratio[None], advantage, settings)
        statistics.turns += 1
        statistics.tokens += len(turn.action)
        statistics.negative_log_prob -= float(turn.action.detach().sum())
    return _kl_penalty(turns, settings, statistics) - total


def _action_ratios(log_ratios: list[torch.Tensor], objective: Objective) -> list[torch.Tensor]:
    """Per token; for gspo every token has its trajectory's ratio, so that at ratio 1 all objectives have one gradient."""
    if objective != "gspo":
        return [torch.exp(log_ratio) for log_ratio in log_ratios]
    sequence = torch.exp(torch.cat(log_ratios).mean())
    return [sequence.expand(len(log_ratio)) for log_ratio in log_ratios]


def _kl_penalty(turns: list[TurnLogProbs], settings: ObjectiveSettings, statistics: Statistics) -> torch.Tensor:
    penalty = turns[0].action.new_zeros(())
    for turn in turns:
        if turn.reference_action is not None:
            kl = kl_to_reference(turn.action, turn.reference_action).sum()
            statistics.kl += float(kl.detach())
            penalty = penalty + settings.beta * kl
    return penalty


def _count(statistics: Statistics, ratios: torch.Tensor, advantage: float, settings: ObjectiveSettings) -> None:
    """A ratio counts as clipped where the clip takes its gradient away."""
    values = ratios.detach()
    outside = values > 1 + settings.clip_high if advantage > 0 else values < 1 - settings.clip_low
    statistics.ratios += len(values)
    if settings.objective != "sapo" and advantage != 0:
        statistics.clipped += int(outside.sum())
    statistics.largest_ratio_gap = max(statistics.largest_ratio_gap, float((values - 1).abs().max()))
