"""Trains the micro checkpoint from a seed: build, drills, SFT, export (`npm run train:micro`).

python -m ssr_trainer.micro.train --seed 1 [--run DIR] [--export DIR]; an interrupted run continues where it stopped.
`--reasoning freeform` trains the twin that writes its reasoning instead: same build, same drills (a finished drill phase
in RUN is their common start), same questions and steps; it goes to RUN/sft-freeform and RUN/model-freeform.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict
from pathlib import Path

import torch
from tokenizers import Tokenizer
from transformers import Qwen3VLForConditionalGeneration

from ..images import ImageSpec
from ..library import load_library
from ..loss import LossSettings
from ..optimisation import OptimiserSettings, Task, train
from ..sft import BatchSettings, SftTask
from ..trajectories import Encoder
from . import texts
from .build import build_config, build_model, build_tokenizer, save_folder
from .drills import DrillTask
from .stream import TYPE_WEIGHTS, development_trajectories, training_trajectories
from .twin import TWIN_LOSS, TwinTask

DRILL_STEPS = OptimiserSettings(steps=700, learning_rate=2e-3, warmup_steps=80, evaluate_every=50, save_every=50)
SFT_STEPS = OptimiserSettings(steps=1200, learning_rate=1.5e-3, warmup_steps=60, evaluate_every=50, save_every=50)
BATCHES = BatchSettings(trajectories_per_step=16, rows_per_pass=4, branch_turns="one")
LOSS = LossSettings(tau=0.3, alpha=1.0, selection=1.0, candidate_language_model=0.1)
HELD_OUT_PER_TYPE = 15
TWIN_HELD_OUT_PER_TYPE = 5
# The ending of a way to reason in the names of what its training writes; the drills are common to all.
ENDINGS = {"selection": "", "freeform": "-freeform"}
# What one turn may need: an action, or a trace and an action.
MAX_NEW_TOKENS = {"selection": 64, "freeform": 256}


def main() -> None:
    parser = argparse.ArgumentParser(description="Train the micro checkpoint from scratch.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--reasoning", choices=sorted(ENDINGS), default="selection")
    parser.add_argument("--run", type=Path, help="state and curves (default scripts/trainer/runs/micro-seed-SEED)")
    parser.add_argument("--export", type=Path, help="where the checkpoint goes (default RUN/model or RUN/model-freeform)")
    parser.add_argument("--drill-steps", type=int, default=DRILL_STEPS.steps)
    parser.add_argument("--sft-steps", type=int, default=SFT_STEPS.steps)
    options = parser.parse_args()
    run = options.run or texts.REPOSITORY / f"scripts/trainer/runs/micro-seed-{options.seed}"
    torch.set_num_threads(1)
    export = options.export or run / f"model{ENDINGS[options.reasoning]}"
    train_micro(options.seed, run, export, options.drill_steps, options.sft_steps, options.reasoning)


def train_micro(seed: int, run: Path, export: Path, drill_steps: int, sft_steps: int, reasoning: str) -> None:
    drills = OptimiserSettings(**{**asdict(DRILL_STEPS), "steps": drill_steps})
    sft = OptimiserSettings(**{**asdict(SFT_STEPS), "steps": sft_steps})
    tokenizer, model, encoder = start(seed, run / "untrained")
    _write_recipe(run, seed, drills, sft, reasoning)
    started = time.process_time()
    train(model, DrillTask(encoder, seed), drills, run / "drills")
    train(model, sft_task(encoder, seed, reasoning), sft, run / f"sft{ENDINGS[reasoning]}")
    save_folder(export, tokenizer, model, torch.bfloat16, MAX_NEW_TOKENS[reasoning])
    print(f"{(time.process_time() - started) / 60:.1f} CPU-minutes in this process; checkpoint in {export}")


def sft_task(encoder: Encoder, seed: int, reasoning: str) -> Task:
    if reasoning == "freeform":
        return TwinTask(encoder, BATCHES, seed, TWIN_HELD_OUT_PER_TYPE)
    held_out = development_trajectories(seed, HELD_OUT_PER_TYPE)
    return SftTask(encoder, lambda step, count: training_trajectories(seed, step, count), held_out, BATCHES, LOSS, seed)


def start(seed: int, folder: Path) -> tuple[Tokenizer, Qwen3VLForConditionalGeneration, Encoder]:
    """The tokenizer, the untrained model and the encoder; `folder` receives the untrained checkpoint."""
    tokenizer = build_tokenizer(texts.tokenizer_texts())
    model = build_model(build_config(tokenizer), seed)
    save_folder(folder, tokenizer, model, torch.float32)
    library = load_library(texts.LIBRARY, tokenizer)
    return tokenizer, model, Encoder(tokenizer, texts.SYSTEM_PROMPT.read_text(), library, ImageSpec.load(folder))


def _write_recipe(run: Path, seed: int, drills: OptimiserSettings, sft: OptimiserSettings, reasoning: str) -> None:
    recipe = {
        "seed": seed,
        "drills": asdict(drills),
        "sft": asdict(sft),
        "batches": asdict(BATCHES),
        "loss": asdict(TWIN_LOSS if reasoning == "freeform" else LOSS),
        "type_weights": TYPE_WEIGHTS,
    }
    run.mkdir(parents=True, exist_ok=True)
    (run / f"recipe{ENDINGS[reasoning]}.json").write_text(json.dumps(recipe, indent=2) + "\n")


if __name__ == "__main__":
    main()
