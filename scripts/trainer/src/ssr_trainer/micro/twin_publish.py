"""Publishes the freeform twin of a run: evaluates it with the real loop, writes its folder, its card and its golden file.

python -m ssr_trainer.micro.twin_publish --run RUN [--splits plain hard]; `--splits dev --dry-run` while developing.
"""

from __future__ import annotations

import argparse
import json
import shutil
from itertools import pairwise
from pathlib import Path

import torch

from ..evaluate import harness_evaluation
from . import texts
from .card import curve, evaluations, losses, success_table
from .publish import ONCE
from .traces import MAX_TOKENS, MIN_TOKENS
from .twin import FREE_WORDING_STEPS
from .twin_golden import MODEL, OUTPUT, write_twin_golden

# Room for a trace and for an action.
THOUGHT_TOKENS, ACTION_TOKENS = 192, 64

CARD = """---
license: apache-2.0
library_name: transformers
pipeline_tag: image-text-to-text
---
# The micro checkpoint's freeform twin

The same Qwen3-VL as [the micro checkpoint](../model/README.md), of the same size and with the same tokenizer, trained from the same drills on the same questions for the same number of steps, but to **write** its reasoning:
before each action a trace of {shortest} to {longest} tokens between `<thinking>` and `</thinking>`, which says what is asked, what the picture shows, what is known, what is missing and what to do. It has never seen the candidates of a
library. It exists so that selection and written reasoning can be compared on any laptop; it knows nothing outside the [micro world](../README.md) and says nothing about larger models.

## Success
{success}

Measured by `ssr eval --reasoning freeform` with the real loop and real tools, greedy. Names of `plain` and `hard` never occur in training or development. {once}

## Recipe
1. The finished drills of the micro checkpoint (seed {seed}, {drill_steps} steps), weights and nothing else: the common start of both.
2. {sft_steps} SFT steps of {batch} trajectories, question by question and step by step those of the micro checkpoint. Each gold turn gets a trace made from the gold trajectory (`micro/traces.py`). A sentence has three wordings: in the first
   {free} steps each sentence draws its own, then each trajectory keeps to one way of wording. Loss per turn: mean token loss over the trace plus mean token loss over the action; no candidates. AdamW, rate {rate}, warm-up, constant, cosine to a tenth, as there.

SFT took {minutes:.0f} minutes on a share of one CPU core.
Repeat: `scripts/trainer/.venv/bin/python -m ssr_trainer.micro.train --reasoning freeform --seed {seed}` (drills are trained first if the run has none), then `scripts/trainer/.venv/bin/python -m ssr_trainer.micro.twin_publish --run scripts/trainer/runs/micro-seed-{seed}`.

## Curve
On gold traces of questions with development names: nats per trace token (wording cannot be foreseen, so it stays above zero; traces are worded freely up to step {free}), and the share of actions whose tokens are all greedy. A gold trace gives the answer away, so the last column is no success rate.

{curve}

## Use
Ask it with the prompt `configs/prompts/micro.txt` and allow about {thought} tokens for a trace and {action} for an action: the context has 2048 positions, and a turn starts only where its whole allowance fits.

## Limits
As for the micro checkpoint. What differs from it beside the reasoning: no candidate is scored in training, so the selection loss's branches are absent, and sequences are longer, so a step takes longer. The traces were revised twice on development questions, since the region of the crop was not learnt:
they did not say where the tile is (given up after 700 steps), and every sentence drew its own wording (given up after {free} steps). Optimiser, rates and batches were not tuned for it.
Licence: Apache-2.0, as the project.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description="Evaluate a run's freeform twin and publish its checkpoint.")
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--splits", nargs="+", default=["plain", "hard"])
    parser.add_argument("--dry-run", action="store_true", help="only evaluate and print")
    options = parser.parse_args()
    torch.set_num_threads(1)
    trained = options.run / "model-freeform"
    results = {split: options.run / "evaluation-freeform" / split for split in options.splits}
    summaries = {split: evaluate(trained, split, output) for split, output in results.items()}
    tables = [f"{success_table(split, summaries[split])}\n\n{written(results[split])}" for split in options.splits]
    print("\n\n".join(tables))
    if options.dry_run:
        return
    shutil.copytree(trained, MODEL, dirs_exist_ok=True)
    (MODEL / "README.md").write_text(card(options.run, tables, ONCE if options.splits == ["plain", "hard"] else ""))
    write_twin_golden(MODEL, OUTPUT)
    print(f"published in {MODEL}; golden file in {OUTPUT}")


def evaluate(model: Path, split: str, output: Path) -> dict:
    """A fresh evaluation: an older one in `output` is removed."""
    shutil.rmtree(output, ignore_errors=True)
    output.parent.mkdir(parents=True, exist_ok=True)
    extra = ["--reasoning", "freeform", "--max-thought-tokens", str(THOUGHT_TOKENS), "--max-new-tokens", str(ACTION_TOKENS)]
    return harness_evaluation(texts.REPOSITORY, model.resolve(), split, output.resolve(), extra)


def written(output: Path) -> str:
    """How much the twin wrote, from the records of a run."""
    episodes = [json.loads(line) for line in (output / "episodes.jsonl").read_text().splitlines()]
    turns = [turn for episode in episodes for turn in episode["turns"]]
    lengths = sorted(turn["reasoning"]["length"] for turn in turns)
    tokens = sum(lengths) + sum(turn["action"]["length"] for turn in turns)
    mean = sum(lengths) / len(lengths)
    return (
        f"{len(turns) / len(episodes):.2f} turns and {tokens / len(episodes):.0f} written tokens per question; "
        f"traces of {lengths[0]} to {lengths[-1]} tokens, {mean:.0f} in the mean."
    )


def card(run: Path, tables: list[str], once: str) -> str:
    recipe = json.loads((run / "recipe-freeform.json").read_text())
    sft = evaluations(run / "sft-freeform")
    # Seconds count from the start of a process: an interrupted run has several spans.
    seconds = [*(row["seconds"] for row in sft), 0.0]
    spans = [before for before, after in pairwise(seconds) if after < before]
    return CARD.format(
        shortest=MIN_TOKENS,
        longest=MAX_TOKENS,
        success="\n\n".join(tables),
        once=once,
        seed=recipe["seed"],
        drill_steps=recipe["drills"]["steps"],
        sft_steps=recipe["sft"]["steps"],
        batch=recipe["batches"]["trajectories_per_step"],
        rate=recipe["sft"]["learning_rate"],
        free=FREE_WORDING_STEPS,
        minutes=sum(spans) / 60,
        curve=curve(sft, ["trace_nats", "action"], losses(run / "sft-freeform")),
        thought=THOUGHT_TOKENS,
        action=ACTION_TOKENS,
    )


if __name__ == "__main__":
    main()
