"""Trajectories as token ids: the history s, q and, per turn, z, a and o, each encoded on its own and concatenated.

The JSONL form serves any Qwen3-VL folder; a line is
{"id", "question", "images": [path...], "turns": [{"reasoning": candidate id, "action": text,
"observation": {"text": BODY, "images": [path...]} | null}]}. BODY holds one image marker per observation image.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from . import dialect
from .images import ImageSpec, Pixels, preprocess
from .library import Library


@dataclass(frozen=True)
class Observation:
    text: str
    images: list[np.ndarray | Path] = field(default_factory=list)


@dataclass(frozen=True)
class Turn:
    reasoning: str
    action: str
    observation: Observation | None = None


@dataclass(frozen=True)
class Trajectory:
    """A gold trajectory; `type` groups it in reports."""

    id: str
    question: str
    images: list[np.ndarray | Path]
    turns: list[Turn]
    type: str = ""


@dataclass(frozen=True)
class EncodedTurn:
    """`chosen` is the gold candidate's position in the library; `observation` is empty after the last turn."""

    chosen: int
    action: list[int]
    observation: list[int]


@dataclass(frozen=True)
class EncodedTrajectory:
    """Ids with image pads expanded, and all images in the order of their pads."""

    id: str
    type: str
    prompt: list[int]
    turns: list[EncodedTurn]
    images: list[Pixels]


class Encoder:
    """Turns trajectories into ids with one tokenizer, one system prompt, one library and one image preprocessing."""

    def __init__(self, tokenizer: Tokenizer, system_prompt: str, library: Library, spec: ImageSpec) -> None:
        self.tokenizer, self.library, self.spec = tokenizer, library, spec
        self.pad_id = tokenizer.token_to_id(dialect.IMAGE_PAD)
        self._system = self.ids(dialect.system_part(system_prompt))

    def ids(self, text: str) -> list[int]:
        return self.tokenizer.encode(text, add_special_tokens=False).ids

    def expand(self, ids: list[int], images: list[Pixels]) -> list[int]:
        """Replaces each image pad by as many as its picture has tokens."""
        waiting = iter(images)
        expanded: list[int] = []
        for token in ids:
            expanded.extend([token] * next(waiting).tokens if token == self.pad_id else [token])
        if next(waiting, None) is not None:
            raise ValueError(f"expected as many image markers as images, got {len(images)} images and fewer markers")
        return expanded

    def prompt(self, question: str, images: list[Pixels]) -> list[int]:
        """s followed by q, expanded."""
        return self.expand(self._system + self.ids(dialect.question_part(question, len(images))), images)

    def encode(self, trajectory: Trajectory) -> EncodedTrajectory:
        images = [preprocess(image, self.spec) for image in trajectory.images]
        prompt = self.prompt(trajectory.question, images)
        turns = []
        for turn in trajectory.turns:
            observation: list[int] = []
            if turn.observation is not None:
                seen = [preprocess(image, self.spec) for image in turn.observation.images]
                observation = self.expand(self.ids(dialect.observation_part(turn.observation.text)), seen)
                images.extend(seen)
            action = self.ids(dialect.action_part(turn.action))
            turns.append(EncodedTurn(self.library.index(turn.reasoning), action, observation))
        return EncodedTrajectory(trajectory.id, trajectory.type, prompt, turns, images)


def read_trajectories(path: Path) -> Iterator[Trajectory]:
    """Trajectories of a JSONL file; image paths are relative to the file's folder."""

    def located(names: list[str]) -> list[np.ndarray | Path]:
        return [path.parent / name for name in names]

    with path.open() as lines:
        for number, line in enumerate(lines, 1):
            try:
                raw = json.loads(line)
                turns = [
                    Turn(
                        turn["reasoning"],
                        turn["action"],
                        Observation(seen["text"], located(seen.get("images", []))) if (seen := turn.get("observation")) else None,
                    )
                    for turn in raw["turns"]
                ]
                yield Trajectory(raw["id"], raw["question"], located(raw["images"]), turns, raw.get("type", ""))
            except (KeyError, json.JSONDecodeError) as error:
                raise ValueError(f"expected a trajectory in line {number} of {path}: {error!r}") from error
