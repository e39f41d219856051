"""The micro checkpoint's card, written from the files of its run: nothing in it is typed by hand."""

from __future__ import annotations

import csv
import json
from pathlib import Path

from transformers import Qwen3VLForConditionalGeneration

CURVE_ROWS = 12

CARD = """---
license: apache-2.0
library_name: transformers
pipeline_tag: image-text-to-text
---
# The micro checkpoint

A Qwen3-VL of {parameters:.2f} million parameters ({visual:.2f} million visual), trained from random weights on the synthetic [micro world](../README.md) to act as a search agent with
selection-based reasoning. It exists for tests, demonstrations and measurements of the harness. It knows nothing outside that world and says nothing about larger models.

## Success
{success}

Measured by `ssr eval` with the real loop and real tools (BM25 text search, reverse image search, crop), greedy, tau 0, alpha 1. Names of `plain` and `hard` never occur in training or development. {once}

## Recipe
Data: drawn online from the seeded generator, one fresh draw per step; no outside data. Seed {seed}.
1. Fan-in initialisation, then {drill_steps} drill steps (80 short copying and seeing exercises a step, AdamW, rate {drill_rate}).
2. {sft_steps} SFT steps of {batch} trajectories: categorical loss over the six candidates (tau {tau}, alpha {alpha}, lambda {selection}; at one turn per trajectory), length-normalised action loss, {language_model} times a
   language-model loss on the gold candidate; AdamW, rate {sft_rate}, warm-up, constant, cosine to a tenth.

{minutes} on one CPU core. Question types were drawn with the weights {weights}.
Repeat: `npm run train:micro`. The settings in full are in `scripts/trainer/src/ssr_trainer/micro/train.py`.

## Curves
Drills, share of held-out drills whose target is wholly greedy:

{drill_curve}

SFT, on questions with development names (a question succeeds if every selection and every greedy action token is the gold one):

{sft_curve}

## Limits
The images are drawn shapes; the library must be the six candidates it was trained with (others are out of distribution); a system prompt other than `configs/prompts/micro.txt` was not tried.
Licence: Apache-2.0, as the project.
"""


def write_card(folder: Path, run: Path, summaries: dict[str, dict], once: str) -> None:
    """`summaries`: summary.json of `ssr eval` by split."""
    recipe = json.loads((run / "recipe.json").read_text())
    model = Qwen3VLForConditionalGeneration.from_pretrained(folder)
    count = sum(weight.numel() for weight in model.parameters())
    visual = sum(weight.numel() for weight in model.model.visual.parameters())
    drills, sft = (evaluations(run / phase) for phase in ("drills", "sft"))
    card = CARD.format(
        parameters=count / 1e6,
        visual=visual / 1e6,
        success="\n\n".join(_success(split, summary) for split, summary in summaries.items()),
        once=once,
        seed=recipe["seed"],
        drill_steps=recipe["drills"]["steps"],
        drill_rate=recipe["drills"]["learning_rate"],
        sft_steps=recipe["sft"]["steps"],
        sft_rate=recipe["sft"]["learning_rate"],
        batch=recipe["batches"]["trajectories_per_step"],
        tau=recipe["loss"]["tau"],
        alpha=recipe["loss"]["alpha"],
        selection=recipe["loss"]["selection"],
        language_model=recipe["loss"]["candidate_language_model"],
        minutes=minutes(drills, sft),
        weights=", ".join(f"{name} {weight}" for name, weight in recipe["type_weights"].items()),
        drill_curve=curve(drills, [name for name in drills[0] if name not in ("step", "seconds")], losses(run / "drills")),
        sft_curve=curve(sft, ["selection", "action", "success", "success/shape"], losses(run / "sft")),
    )
    (folder / "README.md").write_text(card)


def _success(split: str, summary: dict) -> str:
    agreement, expected = summary["selection"]["actionAgreement"]["share"], summary["selection"]["expected"]["share"]
    chosen = f"Action agreement {agreement:.1%}; the expected candidate was chosen in {expected:.1%} of turns."
    return f"{success_table(split, summary)}\n\n{chosen}"


def success_table(split: str, summary: dict) -> str:
    rows = [*sorted(summary["success"]["byType"].items()), ("**all**", summary["success"]["overall"])]
    lines = [f"`{split}`:", "", "| type | success | n | 95% interval |", "|---|---|---|---|"]
    for name, rate in rows:
        low, high = rate["interval"]["low"], rate["interval"]["high"]
        lines.append(f"| {name} | {rate['rate']:.1%} | {rate['n']} | {low:.1%} to {high:.1%} |")
    return "\n".join(lines)


def curve(evaluations: list[dict], columns: list[str], losses: dict[int, float]) -> str:
    """A thinned table: step, mean training loss over the 50 steps before it, the columns."""
    every = max(1, -(-len(evaluations) // CURVE_ROWS))
    kept = evaluations[every - 1 :: every]
    if kept[-1] is not evaluations[-1]:
        kept.append(evaluations[-1])
    lines = ["| step | loss | " + " | ".join(columns) + " |", "|---" * (len(columns) + 2) + "|"]
    for row in kept:
        window = [losses[step] for step in range(max(0, row["step"] - 50), row["step"]) if step in losses]
        values = " | ".join(f"{row[name]:.2f}" for name in columns)
        lines.append(f"| {row['step']} | {sum(window) / len(window):.3f} | {values} |")
    return "\n".join(lines)


def evaluations(phase: Path) -> list[dict]:
    return [json.loads(line) for line in (phase / "evaluations.jsonl").read_text().splitlines()]


def losses(phase: Path) -> dict[int, float]:
    with (phase / "curves.csv").open() as lines:
        return {int(row["step"]): float(row["loss"]) for row in csv.DictReader(lines)}


def minutes(drills: list[dict], sft: list[dict]) -> str:
    drill_minutes, sft_minutes = drills[-1]["seconds"] / 60, sft[-1]["seconds"] / 60
    return f"Drills {drill_minutes:.1f} and SFT {sft_minutes:.1f} minutes, evaluation included,"
