"""SFT of any Hugging Face Qwen3-VL folder on trajectories: `python -m ssr_trainer.train_sft CONFIG.json`.

1. read the configuration  2. load model, tokenizer, library  3. train (or continue)  4. save a Hugging Face folder.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

import torch
from tokenizers import Tokenizer
from transformers import Qwen3VLForConditionalGeneration

from .config import SftConfig, load_config
from .data import FileSource
from .images import ImageSpec
from .library import load_library
from .optimisation import train
from .sft import SftTask
from .trajectories import Encoder, read_trajectories

COPIED_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "preprocessor_config.json",
    "chat_template.jinja",
    "chat_template.json",
)


def main() -> None:
    parser = argparse.ArgumentParser(description="Supervised training of selection-based structured reasoning.")
    parser.add_argument("config", type=Path)
    options = parser.parse_args()
    folder = train_from(load_config(options.config), options.config.parent)
    print(f"checkpoint in {folder}")


def train_from(config: SftConfig, base: Path, *, stop_after: int | None = None) -> Path:
    """`base` is what the configuration's paths are relative to; returns the folder of the trained checkpoint."""
    if config.threads is not None:
        torch.set_num_threads(config.threads)
    torch.manual_seed(config.seed)
    folder, run = base / config.model, base / config.run
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    library = load_library(base / config.library, tokenizer)
    encoder = Encoder(tokenizer, (base / config.system_prompt).read_text(), library, ImageSpec.load(folder))
    held_out = [] if config.held_out is None else list(read_trajectories(base / config.held_out))
    source = FileSource(base / config.data, config.seed)
    task = SftTask(encoder, source, held_out, config.batches, config.loss, config.seed)
    model = load_model(config, folder)
    train(model, task, config.optimiser, run, stop_after=stop_after)
    return save_checkpoint(model, folder, run / "model")


def load_model(config: SftConfig, folder: Path) -> Qwen3VLForConditionalGeneration:
    """SDPA takes the tree mask; flash attention would refuse it."""
    dtype = getattr(torch, config.dtype)
    model = Qwen3VLForConditionalGeneration.from_pretrained(folder, dtype=dtype, attn_implementation="sdpa")
    model.to(config.device).train()
    if config.freeze_vision:
        model.model.visual.requires_grad_(False)
    if config.gradient_checkpointing:
        model.activation_checkpointing_enable()
    return model


def save_checkpoint(model: Qwen3VLForConditionalGeneration, source: Path, folder: Path) -> Path:
    model.save_pretrained(folder)
    for name in COPIED_FILES:
        if (source / name).exists():
            shutil.copyfile(source / name, folder / name)
    return folder


if __name__ == "__main__":
    main()
