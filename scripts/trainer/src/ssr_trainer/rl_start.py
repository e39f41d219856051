"""The micro checkpoint from which reinforcement starts: SFT of the actions alone (lambda = 0), after the drills.

`python -m ssr_trainer.rl_start --seed 1`: its actions follow the inserted text, its selection was never trained. The
language-model term on the gold candidate is off too: a candidate's score is its mean log-prob, so that term would train
the selection under another name.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

from .loss import LossSettings
from .micro import texts
from .micro.build import save_folder
from .micro.stream import development_trajectories, training_trajectories
from .micro.train import BATCHES, SFT_STEPS, start
from .optimisation import OptimiserSettings, train
from .sft import SftTask

LOSS = LossSettings(tau=0.3, alpha=1.0, selection=0.0, candidate_language_model=0.0)


def main() -> None:
    parser = argparse.ArgumentParser(description="Train the micro checkpoint's actions, not its selection.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--drills", type=Path, help="run whose drills to start from (default scripts/trainer/runs/micro-seed-SEED)")
    parser.add_argument("--run", type=Path, help="state, curves and model (default scripts/trainer/runs/rl-start-seed-SEED)")
    parser.add_argument("--steps", type=int, default=650)
    options = parser.parse_args()
    runs = texts.REPOSITORY / "scripts/trainer/runs"
    drills = options.drills or runs / f"micro-seed-{options.seed}"
    run = options.run or runs / f"rl-start-seed-{options.seed}"
    torch.set_num_threads(1)
    train_actions(options.seed, drills / "drills/state.pt", run, options.steps)


def train_actions(seed: int, drills: Path, run: Path, steps: int) -> None:
    """`drills`: a state of the micro recipe's drills; writes `run`/model."""
    tokenizer, model, encoder = start(seed, run / "untrained")
    model.load_state_dict(torch.load(drills, weights_only=True, map_location="cpu")["model"])
    settings = OptimiserSettings(
        steps=steps,
        learning_rate=SFT_STEPS.learning_rate,
        warmup_steps=SFT_STEPS.warmup_steps,
        evaluate_every=50,
        save_every=50,
    )
    task = SftTask(
        encoder,
        lambda step, count: training_trajectories(seed, step, count),
        development_trajectories(seed, per_type=15),
        BATCHES,
        LOSS,
        seed,
    )
    train(model, task, settings, run / "sft")
    save_folder(run / "model", tokenizer, model, torch.float32)


if __name__ == "__main__":
    main()
