"""Text of the micro world for the tokenizer: every kind of string that a trajectory can hold."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from micro_world.entities import NamePool
from micro_world.questions import QUESTION_TYPES, TRAINING_STYLE, Builder

from ..dialect import VISION, reasoning_part

REPOSITORY = Path(__file__).resolve().parents[5]
SYSTEM_PROMPT = REPOSITORY / "configs/prompts/micro.txt"
LIBRARY = REPOSITORY / "configs/libraries/default.json"
DATA = REPOSITORY / "benchmarks/micro/data"
MODEL = REPOSITORY / "benchmarks/micro/model"


def tokenizer_texts(samples_per_type: int = 40) -> list[str]:
    """The prompt, the library, the roles, tool errors, and sampled questions, actions and observations."""
    library = json.loads(LIBRARY.read_text())
    texts = [SYSTEM_PROMPT.read_text(), "system\n", "user\n", "assistant\n", "\n", "Error: No results."]
    texts += [reasoning_part(entry["text"]) for entry in library["entries"].values()]
    rng, builder = np.random.default_rng(0), Builder(NamePool("train", unique=False), TRAINING_STYLE)
    for type_name in QUESTION_TYPES:
        for _ in range(samples_per_type):
            question = builder.build(rng, type_name)
            texts.append(question.text + "\n")
            for turn in question.turns:
                texts.append(turn.action.replace("<tool_call>", "").replace("</tool_call>", ""))
                texts += (turn.observation_text or "").replace(VISION, "\n").split("\n")
                texts.append(".\n")
    return texts
