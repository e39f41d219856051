"""States of a run by reinforcement: everything that the next step depends on, and the weights for the engine.

    RUN/states/step-000012/   model, optimizer and random states, written by accelerate
    RUN/states/latest         the name of the newest whole one; replaced atomically, after its folder is complete
    RUN/weights/step-000012/  a Hugging Face folder for the engine
A killed run leaves a whole state of the last step or of the one before.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from pathlib import Path
from typing import IO

import torch
from accelerate import Accelerator

from .rl_policy import TokenScorer
from .train_sft import COPIED_FILES


def lock_run(run: Path) -> IO[str]:
    """Waits until no other trainer writes this run; one whose conductor was killed still finishes its step. Keep the result."""
    run.mkdir(parents=True, exist_ok=True)
    lock = (run / "lock").open("w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


def state_name(step: int) -> str:
    return f"step-{step:06d}"


def save_state(accelerator: Accelerator, run: Path, step: int) -> None:
    """Every process calls this."""
    states = run / "states"
    folder = states / state_name(step)
    if accelerator.is_main_process:
        shutil.rmtree(folder, ignore_errors=True)
        states.mkdir(parents=True, exist_ok=True)
    accelerator.wait_for_everyone()
    accelerator.save_state(str(folder))
    accelerator.wait_for_everyone()
    if accelerator.is_main_process:
        replace_text(states / "latest", folder.name)
        for other in states.iterdir():
            if other.is_dir() and other.name != folder.name:
                shutil.rmtree(other)


def load_state(accelerator: Accelerator, run: Path) -> int:
    """Restores the newest state; returns the number of finished steps (0 without a state)."""
    latest = run / "states/latest"
    if not latest.exists():
        return 0
    name = latest.read_text().strip()
    accelerator.load_state(str(run / "states" / name))
    return int(name.removeprefix("step-"))


def export_weights(accelerator: Accelerator, policy: torch.nn.Module, source: Path, run: Path, step: int) -> Path:
    """Writes beside and renames; keeps the folder of the step before, which the engine may still be reading."""
    folder = run / "weights" / state_name(step)
    weights = accelerator.get_state_dict(policy)
    if accelerator.is_main_process:
        waiting = folder.with_name(f"{folder.name}.part")
        shutil.rmtree(waiting, ignore_errors=True)
        scorer = accelerator.unwrap_model(policy)
        assert isinstance(scorer, TokenScorer)
        own = {name.removeprefix("model."): value for name, value in weights.items()}
        scorer.model.save_pretrained(waiting, state_dict=own)
        for name in (*COPIED_FILES, "generation_config.json"):
            if (source / name).exists():
                shutil.copyfile(source / name, waiting / name)
        shutil.rmtree(folder, ignore_errors=True)
        os.replace(waiting, folder)
        for other in folder.parent.iterdir():
            if other.name not in (state_name(step), state_name(step - 1)):
                shutil.rmtree(other)
    accelerator.wait_for_everyone()
    return folder


def replace_text(path: Path, text: str) -> None:
    waiting = path.with_name(f"{path.name}.part")
    waiting.write_text(f"{text}\n")
    os.replace(waiting, path)
