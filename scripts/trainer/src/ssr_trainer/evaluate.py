"""Two evaluations: a quick one on packed gold trajectories while training, and the real loop of the `ssr` harness.

Quick: a turn is right if the gold candidate has the highest score and every action token is the greedy one; a question
succeeds if all its turns are right. Following its own choices, the model then walks exactly the gold path.
"""

from __future__ import annotations

import json
import subprocess
from collections import defaultdict
from pathlib import Path

import torch
from transformers import Qwen3VLForConditionalGeneration

from .loss import TurnResult, forward_turns
from .packing import PackedRow, collate


@torch.no_grad()
def quick_evaluation(
    model: Qwen3VLForConditionalGeneration, rows: list[PackedRow], pad_id: int, alpha: float, rows_per_pass: int
) -> dict[str, float]:
    """Shares of right selections and actions over turns, and of successful questions, in all and per type."""
    model.eval()
    selected, acted, succeeded = [], [], defaultdict(list)
    ordered = sorted(rows, key=lambda row: len(row.ids))
    for start in range(0, len(ordered), rows_per_pass):
        batch = collate(ordered[start : start + rows_per_pass], pad_id)
        for row, turns in zip(batch.rows, forward_turns(model, batch, alpha), strict=True):
            selections = [_selected_gold(turn) for turn in turns]
            actions = [bool(turn.action_is_greedy.all()) for turn in turns]
            selected += selections
            acted += actions
            succeeded[row.type].append(all(selections) and all(actions))
    model.train()
    everything = [success for successes in succeeded.values() for success in successes]
    return {
        "selection": _mean(selected),
        "action": _mean(acted),
        "success": _mean(everything),
        **{f"success/{name}": _mean(successes) for name, successes in sorted(succeeded.items())},
    }


def harness_evaluation(repository: Path, model: Path, split: str, output: Path, extra: list[str]) -> dict[str, object]:
    """Runs `ssr eval`, the real multi-turn loop with real tools, and returns its summary.json."""
    command = ["node", str(repository / "bin/ssr.js"), "eval", "--benchmark", "micro", "--split", split]
    command += ["--model", str(model), "--output", str(output), *extra]
    finished = subprocess.run(command, cwd=repository, capture_output=True, text=True)
    if finished.returncode != 0:
        raise RuntimeError(f"expected `ssr eval` to succeed, exit code {finished.returncode}: {finished.stderr[-2000:]}")
    return json.loads((output / "summary.json").read_text())


def _selected_gold(turn: TurnResult) -> bool:
    assert turn.scores is not None, "evaluation packs every candidate of every turn"
    return int(turn.scores.argmax()) == turn.packed.chosen


def _mean(values: list[bool]) -> float:
    return sum(values) / max(1, len(values))
