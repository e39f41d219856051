"""The SFT task: trajectories of a step, packed, batched by length, differentiated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from transformers import Qwen3VLForConditionalGeneration

from .evaluate import quick_evaluation
from .loss import LossSettings, forward_turns, sft_loss
from .packing import PackedRow, collate, pack
from .trajectories import Encoder, EncodedTrajectory, Trajectory


@dataclass(frozen=True)
class BatchSettings:
    trajectories_per_step: int = 16
    rows_per_pass: int = 4
    branch_turns: Literal["one", "all"] = "all"


class SftTask:
    """`source(step, count)` gives the trajectories of a step; `held_out` are evaluated with every branch packed."""

    def __init__(
        self,
        encoder: Encoder,
        source: Callable[[int, int], Sequence[Trajectory]],
        held_out: Sequence[Trajectory],
        batches: BatchSettings,
        loss: LossSettings,
        seed: int,
    ) -> None:
        self._encoder, self._source, self._batches, self._loss, self._seed = encoder, source, batches, loss, seed
        encoded = [encoder.encode(trajectory) for trajectory in held_out]
        self._held_out = [self._pack(trajectory, set(range(len(trajectory.turns)))) for trajectory in encoded]
        self._filler_id = encoder.ids("\n")[0]

    def backward(self, model: Qwen3VLForConditionalGeneration, step: int) -> dict[str, float]:
        rng = np.random.default_rng([self._seed, 3, step])
        count = self._batches.trajectories_per_step
        encoded = [self._encoder.encode(trajectory) for trajectory in self._source(step, count)]
        rows = [self._pack(trajectory, self._branch_turns(trajectory, rng)) for trajectory in encoded]
        rows.sort(key=lambda row: len(row.ids))
        sums = {"loss": 0.0, "selection_loss": 0.0, "action_loss": 0.0, "candidate_loss": 0.0}
        right = turns = 0
        for start in range(0, len(rows), self._batches.rows_per_pass):
            batch = collate(rows[start : start + self._batches.rows_per_pass], self._filler_id)
            results = forward_turns(model, batch, self._loss.alpha)
            parts = sft_loss(results, self._loss)
            (parts.total / len(rows)).backward()
            values = (float(parts.total.detach()), parts.selection, parts.action, parts.candidate)
            for name, value in zip(sums, values, strict=True):
                sums[name] += value / len(rows)
            scored = [turn for row in results for turn in row if turn.scores is not None]
            right += sum(int(turn.scores.argmax()) == turn.packed.chosen for turn in scored)
            turns += len(scored)
        return {**sums, "selection_accuracy": right / max(1, turns)}

    def evaluate(self, model: Qwen3VLForConditionalGeneration) -> dict[str, float]:
        return quick_evaluation(model, self._held_out, self._filler_id, self._loss.alpha, self._batches.rows_per_pass)

    def _branch_turns(self, trajectory: EncodedTrajectory, rng: np.random.Generator) -> set[int]:
        turns = len(trajectory.turns)
        return {int(rng.integers(turns))} if self._batches.branch_turns == "one" else set(range(turns))

    def _pack(self, trajectory: EncodedTrajectory, branch_turns: set[int]) -> PackedRow:
        return pack(trajectory, self._encoder.library, branch_turns, self._encoder.pad_id, self._encoder.spec.merge)
