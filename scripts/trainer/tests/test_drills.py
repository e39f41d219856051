"""Drills and the training stream are reproducible, and keep to training names."""

import numpy as np
from micro_world.entities import NamePool
from micro_world.lexicon import name_pairs
from ssr_trainer.micro.drills import DRILLS, DrillTask
from ssr_trainer.micro.stream import training_trajectories


def test_a_drill_step_has_finite_gradients(untrained) -> None:
    task = DrillTask(untrained.encoder, seed=2, samples_per_step=12, rows_per_pass=6)
    first = task.backward(untrained.model, 0)["loss"]
    untrained.model.zero_grad()
    again = task.backward(untrained.model, 0)["loss"]
    gradients = [weight.grad for weight in untrained.model.parameters() if weight.grad is not None]
    untrained.model.zero_grad()
    assert first == again and all(bool(gradient.isfinite().all()) for gradient in gradients)


def test_every_drill_can_be_made() -> None:
    rng, names = np.random.default_rng(0), NamePool("train", unique=False)
    for kind, (make, _) in DRILLS.items():
        assert make(rng, names).kind == kind


def test_the_stream_repeats_and_uses_training_names_only() -> None:
    first, again = training_trajectories(4, 7, 64), training_trajectories(4, 7, 64)
    assert [t.question for t in first] == [t.question for t in again]
    assert [t.question for t in first] != [t.question for t in training_trajectories(4, 8, 64)]
    text = " ".join(
        [t.question for t in first] + [turn.observation.text for t in first for turn in t.turns if turn.observation]
    )
    assert not any(name in text for group in ("dev", "test") for name in name_pairs(group))
