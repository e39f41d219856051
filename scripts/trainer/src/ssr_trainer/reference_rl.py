"""Algorithm 2's loss once more, in plain NumPy, line by line from the pseudocode: the oracle of objectives.py in the tests.

Loops over questions, trajectories, turns and tokens; no line is shared with the code that trains.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np


@dataclass
class ReferenceTurn:
    """Current log-probs of z [K] and of a [n]; what the rollout logged; the frozen model's log-probs of a."""

    reasoning: np.ndarray
    action: np.ndarray
    scores: np.ndarray
    index: int
    logged_log_q: float
    logged_action: np.ndarray
    reference_action: np.ndarray


@dataclass
class ReferenceTrajectory:
    question: str
    reward: float
    turns: list[ReferenceTurn]


@dataclass(frozen=True)
class ReferenceSettings:
    objective: str
    alpha: float
    tau: float
    gamma: float
    beta: float
    clip_low: float
    clip_high: float
    floor: float
    sapo_positive: float
    sapo_negative: float


def reference_loss(batch: list[ReferenceTrajectory], settings: ReferenceSettings) -> float:
    objective, kl = 0.0, 0.0
    for trajectory in batch:
        group = [other.reward for other in batch if other.question == trajectory.question]
        mean = sum(group) / len(group)
        deviation = math.sqrt(sum((reward - mean) ** 2 for reward in group) / len(group))
        advantage = (trajectory.reward - mean) / max(deviation, settings.floor)
        gaps = [now - then for turn in trajectory.turns for now, then in zip(turn.action, turn.logged_action, strict=True)]
        sequence_ratio = math.exp(sum(gaps) / len(gaps))
        for turn in trajectory.turns:
            objective += settings.gamma * _f(_reason_ratio(turn, settings), advantage, settings)
            for k in range(len(turn.action)):
                token_ratio = math.exp(turn.action[k] - turn.logged_action[k])
                ratio = sequence_ratio if settings.objective == "gspo" else token_ratio
                objective += _f(ratio, advantage, settings)
                r = math.exp(turn.reference_action[k] - turn.action[k])
                kl += r - math.log(r) - 1
    return -objective / len(batch) + settings.beta * kl / len(batch)


def _reason_ratio(turn: ReferenceTurn, settings: ReferenceSettings) -> float:
    selected = len(turn.reasoning) ** -settings.alpha * float(np.sum(turn.reasoning))
    logits = [score / settings.tau for score in turn.scores]
    logits[turn.index] = selected / settings.tau
    log_q = logits[turn.index] - math.log(sum(math.exp(logit) for logit in logits))
    return math.exp(log_q - turn.logged_log_q)


def _f(ratio: float, advantage: float, settings: ReferenceSettings) -> float:
    if settings.objective == "sapo":
        slope = settings.sapo_positive if advantage > 0 else settings.sapo_negative
        return 4 / slope / (1 + math.exp(-slope * (ratio - 1))) * advantage
    clipped = max(1 - settings.clip_low, min(1 + settings.clip_high, ratio))
    return min(ratio * advantage, clipped * advantage)
