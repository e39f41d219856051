"""The freeform twin's SFT: the same questions as for selection, with a written trace before each action, no candidates.

    L = - sum_t [ (1 / |z_t|) * sum_k log p(z_tk | h_t, z_t<k)  +  (1 / |a_t|) * sum_k log p(a_tk | h_t, z_t, a_t<k) ]

The trace's mean token loss stands where the selection loss stands in `loss.py`; the action's term is the same. As in the
harness, trace and action are one generation; here too their ids are encoded apart, so that the action begins with a token
of its own.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from micro_world.questions import Question
from transformers import Qwen3VLForConditionalGeneration

from ..dialect import reasoning_part
from ..library import Candidate, Library
from ..loss import LossSettings, TurnResult, forward_turns, sft_loss
from ..packing import PackedRow, collate, pack
from ..sft import BatchSettings
from ..trajectories import Encoder
from .stream import development_questions, to_trajectory, training_questions
from .traces import traces

# `candidate_language_model` weighs the mean token loss of the inserted reasoning, which here is the trace.
TWIN_LOSS = LossSettings(selection=0.0, candidate_language_model=1.0)
TRAINING_TRACES, DEVELOPMENT_TRACES = 8, 9
# Steps in which every sentence of a trace draws its own wording; then each trajectory keeps to one way of wording. The place
# of the tile was at chance after these steps, and learnt within a hundred more once the choice of words was less noise.
FREE_WORDING_STEPS = 350


class TwinTask:
    """The batches of a step depend on the seed and the step alone, and hold the questions of the selection run's step."""

    def __init__(self, encoder: Encoder, batches: BatchSettings, seed: int, held_out_per_type: int) -> None:
        self._encoder, self._batches, self._seed = encoder, batches, seed
        self._filler_id = encoder.ids("\n")[0]
        self._free = True
        self._held_out = {free: self._development_rows(held_out_per_type, free) for free in (True, False)}

    def backward(self, model: Qwen3VLForConditionalGeneration, step: int) -> dict[str, float]:
        rng = np.random.default_rng([self._seed, TRAINING_TRACES, step])
        questions = training_questions(self._seed, step, self._batches.trajectories_per_step)
        self._free = step < FREE_WORDING_STEPS
        rows = [written_row(question, rng, self._encoder, free=self._free) for question in questions]
        rows.sort(key=lambda row: len(row.ids))
        sums = {"loss": 0.0, "trace_loss": 0.0, "action_loss": 0.0}
        for start in range(0, len(rows), self._batches.rows_per_pass):
            batch = collate(rows[start : start + self._batches.rows_per_pass], self._filler_id)
            parts = sft_loss(forward_turns(model, batch, TWIN_LOSS.alpha), TWIN_LOSS)
            (parts.total / len(rows)).backward()
            for name, value in zip(sums, (float(parts.total.detach()), parts.candidate, parts.action), strict=True):
                sums[name] += value / len(rows)
        return sums

    @torch.no_grad()
    def evaluate(self, model: Qwen3VLForConditionalGeneration) -> dict[str, float]:
        """On gold traces worded as in the last step: nats per trace token, and actions whose tokens are all greedy.

        Wording cannot be foreseen, so the nats stay above zero. A gold trace gives the answer away, so the other figure is no
        success rate: that takes the real loop (`twin_publish`).
        """
        model.eval()
        turns: list[TurnResult] = []
        ordered = sorted(self._held_out[self._free], key=lambda row: len(row.ids))
        for start in range(0, len(ordered), self._batches.rows_per_pass):
            batch = collate(ordered[start : start + self._batches.rows_per_pass], self._filler_id)
            turns += [turn for row in forward_turns(model, batch, TWIN_LOSS.alpha) for turn in row]
        model.train()
        tokens = sum(len(turn.chosen_log_probs) for turn in turns)
        return {
            "trace_nats": -sum(float(turn.chosen_log_probs.sum()) for turn in turns) / tokens,
            "action": sum(bool(turn.action_is_greedy.all()) for turn in turns) / len(turns),
        }

    def _development_rows(self, per_type: int, free: bool) -> list[PackedRow]:
        rng = np.random.default_rng([self._seed, DEVELOPMENT_TRACES])
        return [written_row(q, rng, self._encoder, free=free) for q in development_questions(self._seed, per_type)]


def written_row(question: Question, rng: np.random.Generator, encoder: Encoder, *, free: bool = False) -> PackedRow:
    """The gold path with traces. A trajectory's traces are its library, one chosen per turn; no other is packed."""
    encoded = encoder.encode(to_trajectory(question, question.type))
    written = [
        Candidate(f"turn {number}", text, tuple(encoder.ids(reasoning_part(text))))
        for number, text in enumerate(traces(question, rng, free=free))
    ]
    turns = [replace(turn, chosen=number) for number, turn in enumerate(encoded.turns)]
    library = Library("traces", tuple(written))
    return pack(replace(encoded, turns=turns), library, set(), encoder.pad_id, encoder.spec.merge)
