"""A small untrained checkpoint, its encoder and a few gold trajectories, shared by the tests."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from ssr_trainer.micro import texts
from ssr_trainer.micro.build import build_config, build_model, build_tokenizer, save_folder
from ssr_trainer.micro.stream import development_trajectories
from ssr_trainer.images import ImageSpec
from ssr_trainer.library import load_library
from ssr_trainer.packing import PackedRow, pack
from ssr_trainer.trajectories import Encoder, EncodedTrajectory
from transformers import Qwen3VLForConditionalGeneration


@dataclass(frozen=True)
class Untrained:
    folder: Path
    model: Qwen3VLForConditionalGeneration
    encoder: Encoder
    encoded: list[EncodedTrajectory]

    def pack(self, trajectory: EncodedTrajectory, branch_turns: set[int] | None = None) -> PackedRow:
        turns = set(range(len(trajectory.turns))) if branch_turns is None else branch_turns
        return pack(trajectory, self.encoder.library, turns, self.encoder.pad_id, self.encoder.spec.merge)


@pytest.fixture(scope="session")
def untrained(tmp_path_factory: pytest.TempPathFactory) -> Untrained:
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("untrained")
    tokenizer = build_tokenizer(texts.tokenizer_texts())
    model = build_model(build_config(tokenizer), seed=5)
    save_folder(folder, tokenizer, model, torch.float32)
    library = load_library(texts.LIBRARY, tokenizer)
    encoder = Encoder(tokenizer, texts.SYSTEM_PROMPT.read_text(), library, ImageSpec.load(folder))
    types = ["tile-fine", "fact-of-pictured", "fact-of-named", "general", "name"]
    encoded = [encoder.encode(trajectory) for trajectory in development_trajectories(3, 2, types)]
    return Untrained(folder, model, encoder, encoded)
