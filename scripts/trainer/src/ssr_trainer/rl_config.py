"""The JSON configuration of training by reinforcement; unknown and missing keys are refused by name."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from .config import read_settings
from .objectives import ObjectiveSettings


@dataclass(frozen=True)
class RlOptimiserSettings:
    """AdamW with a linear warm-up, then a constant rate: the number of steps need not be known."""

    learning_rate: float = 1e-6
    warmup_steps: int = 0
    beta1: float = 0.9
    beta2: float = 0.98
    weight_decay: float = 0.0
    clip_norm: float = 1.0

    def rate(self, step: int) -> float:
        """Of step `step`, counted from 0."""
        return self.learning_rate * min(1.0, (step + 1) / max(1, self.warmup_steps))


@dataclass(frozen=True)
class RlConfig:
    """Paths are relative to the configuration file. alpha, tau and temperature come with each minibatch."""

    model: str  # a Hugging Face Qwen3-VL folder
    run: str  # states and weights
    reference: str | None = None  # frozen; by default `model`; loaded only if beta > 0
    reasoning: Literal["ssr", "freeform"] = "ssr"
    objective: ObjectiveSettings = field(default_factory=ObjectiveSettings)
    optimiser: RlOptimiserSettings = field(default_factory=RlOptimiserSettings)
    recompute_scores: bool = False  # competitors' scores from the trainer, not from the rollout
    noise_floor: float = 0.01  # nats; a larger gap between trainer and engine raises an alarm
    rows_per_pass: int = 8
    seed: int = 1
    device: Literal["cpu", "cuda"] = "cpu"
    dtype: Literal["float32", "bfloat16"] = "float32"
    mixed_precision: Literal["no", "bf16"] = "no"
    threads: int | None = None
    freeze_vision: bool = False
    gradient_checkpointing: bool = False


def load_rl_config(path: Path) -> RlConfig:
    return read_settings(RlConfig, json.loads(path.read_text()), str(path))
