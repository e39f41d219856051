"""The training loop shared by drills and SFT: AdamW, warm-up, constant, cosine; exact resume; curves on disk."""

from __future__ import annotations

import csv
import json
import math
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import torch
from transformers import Qwen3VLForConditionalGeneration


@dataclass(frozen=True)
class OptimiserSettings:
    steps: int
    learning_rate: float
    warmup_steps: int
    constant_fraction: float = 0.6
    final_fraction: float = 0.1
    beta1: float = 0.9
    beta2: float = 0.98
    weight_decay: float = 0.02
    clip_norm: float = 1.0
    evaluate_every: int = 100
    save_every: int = 100


class Task(Protocol):
    """What is trained. The batch of a step must depend on the step's number alone, so that a resumed run repeats it."""

    def backward(self, model: Qwen3VLForConditionalGeneration, step: int) -> dict[str, float]:
        """Accumulates the gradients of step `step`; returns what to log."""

    def evaluate(self, model: Qwen3VLForConditionalGeneration) -> dict[str, float]:
        """Figures on held-out material."""


def learning_rate(step: int, settings: OptimiserSettings) -> float:
    """Linear warm-up, constant, then a cosine to `final_fraction` of the peak at the last step; step counts from 0."""
    if step < settings.warmup_steps:
        return settings.learning_rate * (step + 1) / settings.warmup_steps
    start = settings.constant_fraction * settings.steps
    if step < start:
        return settings.learning_rate
    progress = min(1.0, (step - start) / max(1.0, settings.steps - start))
    falling = (1 + math.cos(math.pi * progress)) / 2
    return settings.learning_rate * (settings.final_fraction + (1 - settings.final_fraction) * falling)


def make_optimiser(model: Qwen3VLForConditionalGeneration, settings: OptimiserSettings) -> torch.optim.AdamW:
    """Weight decay on matrices only."""
    trained = [weight for weight in model.parameters() if weight.requires_grad]
    matrices = [weight for weight in trained if weight.dim() >= 2]
    others = [weight for weight in trained if weight.dim() < 2]
    groups = [{"params": matrices, "weight_decay": settings.weight_decay}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=settings.learning_rate, betas=(settings.beta1, settings.beta2))


def train(
    model: Qwen3VLForConditionalGeneration,
    task: Task,
    settings: OptimiserSettings,
    run: Path,
    *,
    stop_after: int | None = None,
) -> None:
    """Trains to `settings.steps`, continuing from `run`'s state if it has one. `stop_after` ends early (tests)."""
    run.mkdir(parents=True, exist_ok=True)
    optimiser = make_optimiser(model, settings)
    step = load_state(run, model, optimiser)
    _truncate_curves(run, step)
    started = time.monotonic()
    while step < min(settings.steps, stop_after or settings.steps):
        for group in optimiser.param_groups:
            group["lr"] = learning_rate(step, settings)
        metrics = task.backward(model, step)
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), settings.clip_norm)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        rate = optimiser.param_groups[0]["lr"]
        _append_curve(run, {"step": step, "learning_rate": rate, "gradient_norm": float(norm), **metrics})
        step += 1
        if step % settings.evaluate_every == 0 or step == settings.steps:
            figures = task.evaluate(model)
            seconds = round(time.monotonic() - started, 1)
            with (run / "evaluations.jsonl").open("a") as lines:
                lines.write(json.dumps({"step": step, "seconds": seconds, **figures}) + "\n")
        if step % settings.save_every == 0 or step == settings.steps:
            save_state(run, model, optimiser, step)


def save_state(run: Path, model: Qwen3VLForConditionalGeneration, optimiser: torch.optim.Optimizer, step: int) -> None:
    """Writes beside the old state and renames, so that a killed run leaves one whole state."""
    state = {"step": step, "model": model.state_dict(), "optimiser": optimiser.state_dict(), "torch_rng": torch.get_rng_state()}
    waiting = run / "state.pt.part"
    torch.save(state, waiting)
    os.replace(waiting, run / "state.pt")


def load_state(run: Path, model: Qwen3VLForConditionalGeneration, optimiser: torch.optim.Optimizer) -> int:
    """Restores weights, optimiser and random state; returns the number of finished steps (0 without a state)."""
    path = run / "state.pt"
    if not path.exists():
        return 0
    state = torch.load(path, weights_only=True, map_location="cpu")
    model.load_state_dict(state["model"])
    optimiser.load_state_dict(state["optimiser"])
    torch.set_rng_state(state["torch_rng"])
    return int(state["step"])


def _append_curve(run: Path, row: dict[str, float]) -> None:
    path = run / "curves.csv"
    fresh = not path.exists()
    with path.open("a", newline="") as lines:
        writer = csv.DictWriter(lines, list(row))
        if fresh:
            writer.writeheader()
        writer.writerow({name: f"{value:.6g}" for name, value in row.items()})


def _truncate_curves(run: Path, step: int) -> None:
    """Drops rows of steps that the resumed run will repeat."""
    curves = run / "curves.csv"
    if curves.exists():
        header, *rows = curves.read_text().splitlines()
        kept = [row for row in rows if int(float(row.split(",")[0])) < step]
        curves.write_text("\n".join([header, *kept]) + "\n")
    evaluations = run / "evaluations.jsonl"
    if evaluations.exists():
        rows = [row for row in evaluations.read_text().splitlines() if json.loads(row)["step"] <= step]
        evaluations.write_text("".join(f"{row}\n" for row in rows))
