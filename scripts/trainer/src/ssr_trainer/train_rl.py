"""Algorithm 2: `python -m ssr_trainer.train_rl CONFIG.json [MINIBATCH ...]`, or under `accelerate launch` for several processes.

Without minibatches it serves: each line on stdin is {"minibatch": FOLDER}, each line on stdout says what a step did and
where the new weights are; `ssr train` conducts it so. With minibatches it applies them in turn and ends.

    1. read the rollouts of n trajectories per question, drawn from the current weights at tau > 0     rollouts.py
    2. advantage of each trajectory within its question's group, detached                               objectives.py
    3. one forward pass over each final sequence gives the log-probs of all its turns                   rl_policy.py
    4. the selected candidate's score carries gradients, its competitors' are the rollout's             objectives.py
    5. clipped surrogates of one categorical ratio per turn and one ratio per action token              objectives.py
    6. minus their sum over trajectories, plus beta times the KL of action tokens; one optimizer step   rl_step.py
    7. save the state, export the weights; the engine takes them and drops its caches                   rl_state.py

What the paper leaves open, and the choice here (rl_config.py and ObjectiveSettings hold the values):
- gamma 1, epsilon 0.2 on both sides, beta 0, delta 1e-6; learning rate, group size and training tau are the caller's.
- AdamW (0.9, 0.98), no weight decay, gradient norm at most 1, warm-up to a constant rate.
- The sums over turns and tokens are not divided by their number: J is the paper's sum, only trajectories are averaged.
- KL is the non-negative estimate r - log r - 1 per action token, summed over a trajectory's tokens, averaged over trajectories.
- gspo: the sequence is all action tokens of a trajectory, its ratio exp of their mean log-ratio, applied to each of them;
  sapo: the gate 4/c sigmoid(c (rho - 1)), c = 1 for positive and 1.05 for negative advantages. How the reason ratio enters
  either is unpublished: the same scalar, through the same f as an action's ratio.
- Reward: 1 for a right answer and 0.5 for a well-formed trajectory, added by the harness (the paper's are unknown).
- freeform, the token-level baseline: written reasoning belongs to the action's tokens, in the ratios and in the KL.
- Trajectories without a verdict are masked; groups without spread are counted and have advantage 0.
- Competitors' scores are the rollout's, as in the paper; `recompute_scores` takes the trainer's own, detached.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import DistributedDataParallelKwargs, broadcast_object_list, set_seed
from transformers import Qwen3VLForConditionalGeneration

from .images import ImageSpec
from .optimisation import make_optimiser
from .rl_config import RlConfig, load_rl_config
from .rl_policy import TokenScorer
from .rl_rows import RowPacker
from .rl_state import export_weights, load_state, lock_run, save_state
from .rl_step import Diverged, Update, apply_minibatch
from .rollouts import read_minibatch


def main() -> None:
    parser = argparse.ArgumentParser(description="Training by reinforcement of selection-based structured reasoning.")
    parser.add_argument("config", type=Path)
    parser.add_argument("minibatches", type=Path, nargs="*", help="folders of rollouts; without any, they are read from stdin")
    options = parser.parse_args()
    trainer = Trainer(load_rl_config(options.config), options.config.parent)
    trainer.say(trainer.hello())
    for folder in options.minibatches or trainer.folders_from(sys.stdin):
        try:
            trainer.say(trainer.step(folder))
        except Diverged as error:
            trainer.say({"diverged": str(error), "step": trainer.finished})
            break
    # All together: a process that leaves first breaks the connection of one that still saves.
    trainer.accelerator.wait_for_everyone()
    trainer.accelerator.end_training()


class Trainer:
    """Holds the policy between steps; continues from the run's newest state."""

    def __init__(self, config: RlConfig, base: Path) -> None:
        if config.threads is not None:
            torch.set_num_threads(config.threads)
        set_seed(config.seed)
        unused = DistributedDataParallelKwargs(find_unused_parameters=True)  # a pass without pictures leaves the tower unused
        self.accelerator = Accelerator(
            cpu=config.device == "cpu", mixed_precision=config.mixed_precision, kwargs_handlers=[unused]
        )
        self._source, self._run = base / config.model, base / config.run
        self._lock = lock_run(self._run) if self.accelerator.is_main_process else None
        self.accelerator.wait_for_everyone()
        scorer = TokenScorer(load_policy(config, self._source))
        policy, optimiser = self.accelerator.prepare(scorer, make_optimiser(scorer, config.optimiser))
        self._update = Update(
            self.accelerator,
            policy,
            self._load_reference(config, base),
            optimiser,
            RowPacker(ImageSpec.load(self._source)),
            config,
        )
        self.finished = load_state(self.accelerator, self._run)
        self._weights = export_weights(self.accelerator, policy, self._source, self._run, self.finished)

    def hello(self) -> dict[str, Any]:
        return {
            "ready": True,
            "step": self.finished,
            "weights": str(self._weights.resolve()),
            "processes": self.accelerator.num_processes,
        }

    def step(self, folder: Path) -> dict[str, Any]:
        """Applies one minibatch, saves the state, exports the weights."""
        started = time.monotonic()
        minibatch = read_minibatch(folder)
        metrics = apply_minibatch(self._update, minibatch, self.finished)
        trained = time.monotonic()
        self.finished += 1
        save_state(self.accelerator, self._run, self.finished)
        self._weights = export_weights(self.accelerator, self._update.policy, self._source, self._run, self.finished)
        return {
            "step": self.finished,
            "weights": str(self._weights.resolve()),
            "metrics": metrics,
            "seconds": {"update": trained - started, "save": time.monotonic() - trained},
        }

    def folders_from(self, lines: Any) -> Iterator[Path]:
        """One process reads, all get the same."""
        while True:
            line = [lines.readline() if self.accelerator.is_main_process else None]
            broadcast_object_list(line)
            if not line[0]:
                return
            yield Path(json.loads(line[0])["minibatch"])

    def say(self, reply: dict[str, Any]) -> None:
        if self.accelerator.is_main_process:
            print(json.dumps(reply), flush=True)

    def _load_reference(self, config: RlConfig, base: Path) -> TokenScorer | None:
        if config.objective.beta == 0:
            return None
        folder = self._source if config.reference is None else base / config.reference
        frozen = TokenScorer(load_policy(config, folder)).requires_grad_(False)
        return frozen.to(self.accelerator.device).eval()


def load_policy(config: RlConfig, folder: Path) -> Qwen3VLForConditionalGeneration:
    """SDPA takes the tree mask; flash attention would refuse it."""
    dtype = getattr(torch, config.dtype)
    model = Qwen3VLForConditionalGeneration.from_pretrained(folder, dtype=dtype, attn_implementation="sdpa")
    model.train()
    if config.freeze_vision:
        model.model.visual.requires_grad_(False)
    if config.gradient_checkpointing:
        model.gradient_checkpointing_enable()
    return model


if __name__ == "__main__":
    main()
