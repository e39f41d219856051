"""The training stream of the micro world: the trajectories of step n depend on the seed and n alone."""

from __future__ import annotations

import numpy as np
from micro_world.entities import NamePool
from micro_world.questions import PLAIN_TYPES, QUESTION_TYPES, TRAINING_STYLE, Builder, Question

from ..trajectories import Observation, Trajectory, Turn

# Shapes are learnt last; the hard split's types are seen rarely, so that it keeps its head-room.
TYPE_WEIGHTS = {
    "colour": 0.8, "shape": 2.0, "tile-plain": 1.0, "tile-fine": 1.0, "name": 0.8, "fact-of-pictured": 1.2,
    "fact-of-named": 1.0, "general": 1.2, "tile-small": 0.2, "fact-crowded": 0.2, "partner-of-named": 0.15,
    "partner-of-pictured": 0.15,
}  # fmt: skip


def to_trajectory(question: Question, identifier: str) -> Trajectory:
    turns = [
        Turn(
            turn.reasoning,
            turn.action,
            None if turn.observation_text is None else Observation(turn.observation_text, list(turn.observation_images)),
        )
        for turn in question.turns
    ]
    images = [] if question.image is None else [question.image]
    return Trajectory(identifier, question.text, images, turns, question.type)


def training_questions(seed: int, step: int, count: int) -> list[Question]:
    rng = np.random.default_rng([seed, 1, step])
    builder = Builder(NamePool("train", unique=False), TRAINING_STYLE)
    names = list(QUESTION_TYPES)
    weights = np.array([TYPE_WEIGHTS[name] for name in names])
    drawn = rng.choice(len(names), size=count, p=weights / weights.sum())
    return [builder.build(rng, names[k]) for k in drawn]


def training_trajectories(seed: int, step: int, count: int) -> list[Trajectory]:
    return [to_trajectory(question, f"{step}-{i}") for i, question in enumerate(training_questions(seed, step, count))]


def development_questions(seed: int, per_type: int, types: list[str] | None = None) -> list[Question]:
    """Questions with development names, for curves while training; not the exported dev split."""
    rng = np.random.default_rng([seed, 2])
    builder = Builder(NamePool("dev", unique=False), TRAINING_STYLE)
    return [builder.build(rng, name) for name in types or PLAIN_TYPES for _ in range(per_type)]


def development_trajectories(seed: int, per_type: int, types: list[str] | None = None) -> list[Trajectory]:
    questions = development_questions(seed, per_type, types)
    return [to_trajectory(question, f"dev-{question.type}-{i % per_type}") for i, question in enumerate(questions)]
