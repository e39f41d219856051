"""The freeform twin trains on the selection run's questions and actions; the published one belongs to its golden file."""

import json

import numpy as np
import pytest
import torch
from ssr_trainer.images import ImageSpec, preprocess
from ssr_trainer.loss import forward_turns, hidden_states
from ssr_trainer.micro import texts, twin_golden
from ssr_trainer.micro.golden_reference import Reference
from ssr_trainer.micro.stream import training_questions, training_trajectories
from ssr_trainer.micro.traces import traces
from ssr_trainer.micro.twin import FREE_WORDING_STEPS, TwinTask, written_row
from ssr_trainer.packing import PackedRow, collate, mrope_positions
from ssr_trainer.sft import BatchSettings

SEED, STEP, COUNT = 4, 7, 12


def test_questions_and_gold_actions_are_those_of_the_selection_run(untrained) -> None:
    encoder, rng = untrained.encoder, np.random.default_rng(1)
    selection = training_trajectories(SEED, STEP, COUNT)
    twin = training_questions(SEED, STEP, COUNT)
    for trajectory, question in zip(selection, twin, strict=True):
        expected, row = encoder.encode(trajectory), written_row(question, rng, encoder)
        assert row.ids[: len(expected.prompt)].tolist() == expected.prompt
        for gold, turn in zip(expected.turns, row.turns, strict=True):
            action = row.ids[turn.action.start : turn.action.start + turn.action.length].tolist()
            after = row.ids[turn.action.start + turn.action.length :][: len(gold.observation)].tolist()
            assert (action, after) == (gold.action, gold.observation)


def test_a_row_is_one_path_of_traces_and_actions(untrained) -> None:
    encoder = untrained.encoder
    for question in training_questions(SEED, STEP, COUNT):
        row = written_row(question, np.random.default_rng(2), encoder)
        assert not row.branch.any()
        for trace, turn in zip(traces(question, np.random.default_rng(2)), row.turns, strict=True):
            span = turn.candidates[turn.chosen]
            assert encoder.tokenizer.decode(row.ids[span.start : span.start + span.length]) == f"<thinking>{trace}</thinking>"
            assert span.start + span.length == turn.action.start


def test_the_loss_is_the_mean_over_trace_tokens_and_over_action_tokens(untrained) -> None:
    task = TwinTask(untrained.encoder, BatchSettings(trajectories_per_step=3, rows_per_pass=2), SEED, held_out_per_type=1)
    first = task.backward(untrained.model, STEP)
    gradients = [weight.grad for weight in untrained.model.parameters() if weight.grad is not None]
    assert gradients and all(bool(gradient.isfinite().all()) for gradient in gradients)
    untrained.model.zero_grad()
    assert task.backward(untrained.model, STEP) == first
    untrained.model.zero_grad()
    assert STEP < FREE_WORDING_STEPS
    rng, expected = np.random.default_rng([SEED, 8, STEP]), {"trace_loss": 0.0, "action_loss": 0.0}
    with torch.no_grad():
        for question in training_questions(SEED, STEP, 3):
            row = written_row(question, rng, untrained.encoder, free=True)
            for turn in forward_turns(untrained.model, collate([row], 0), 1.0)[0]:
                expected["trace_loss"] -= float(turn.chosen_log_probs.mean()) / 3
                expected["action_loss"] -= float(turn.action_log_probs.mean()) / 3
    for name, value in expected.items():
        assert abs(first[name] - value) < 1e-4
    assert abs(first["loss"] - sum(expected.values())) < 1e-4


@pytest.fixture(scope="module")
def reference() -> Reference:
    torch.set_num_threads(1)
    return Reference(twin_golden.MODEL, texts.DATA)


def test_the_published_twin_has_the_size_and_the_tokenizer_of_the_micro_checkpoint(reference: Reference) -> None:
    for name in ("tokenizer.json", "tokenizer_config.json", "preprocessor_config.json", "config.json"):
        assert (twin_golden.MODEL / name).read_bytes() == (texts.MODEL / name).read_bytes(), name


@torch.no_grad()
def test_golden_continuations(reference: Reference) -> None:
    cases = json.loads((twin_golden.OUTPUT / "greedy.json").read_text())["cases"]
    spec = ImageSpec.load(twin_golden.MODEL)
    for case in cases:
        images = [preprocess(reference.picture(image), spec) for image in case["images"]]
        ids = np.array(case["expanded_ids"] + case["generated_ids"])
        positions, _ = mrope_positions(ids, images, reference.pad_id, spec.merge)
        row = PackedRow(ids, np.zeros(len(ids), int), np.arange(1, len(ids) + 1), positions, [], images, "")
        hidden = hidden_states(reference.model, collate([row], 0))[0]
        best = reference.model.lm_head(hidden[len(case["expanded_ids"]) - 1 : -1]).argmax(-1).tolist()
        assert best == case["generated_ids"] or case["smallest_margin"] < 1e-3, case["name"]
        thought = reference.tokenizer.decode(case["generated_ids"][: case["thought_tokens"]])
        assert thought.startswith("<thinking>") and thought.endswith("</thinking>")
