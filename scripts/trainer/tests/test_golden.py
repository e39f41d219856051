"""The committed golden files belong to the committed checkpoint, and the trainer's own passes agree with them."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from ssr_trainer.images import ImageSpec, preprocess
from ssr_trainer.micro import texts
from ssr_trainer.micro.golden import OUTPUT
from ssr_trainer.micro.golden_reference import Reference
from ssr_trainer.packing import PackedRow, collate, mrope_positions
from ssr_trainer.loss import hidden_states


@pytest.fixture(scope="module")
def reference() -> Reference:
    torch.set_num_threads(1)
    return Reference(texts.MODEL, texts.DATA)


def cases(name: str) -> list[dict]:
    return json.loads((Path(OUTPUT) / f"{name}.json").read_text())["cases"]


@torch.no_grad()
def own_log_probs(reference: Reference, case: dict, tail: list[int]) -> torch.Tensor:
    """Log-probs of `tail` after a case's history, through the trainer's preprocessing, positions and mask."""
    spec = ImageSpec.load(texts.MODEL)
    images = [preprocess(reference.picture(image), spec) for image in case["images"]]
    ids = np.array(case["expanded_ids"] + tail)
    positions, _ = mrope_positions(ids, images, reference.pad_id, spec.merge)
    row = PackedRow(ids, np.zeros(len(ids), int), np.arange(1, len(ids) + 1), positions, [], images, "")
    hidden = hidden_states(reference.model, collate([row], 0))[0]
    logits = reference.model.lm_head(hidden[len(case["expanded_ids"]) - 1 : -1])
    return torch.log_softmax(logits, -1)


def test_candidate_log_probs(reference: Reference) -> None:
    for case in cases("scores"):
        for candidate in case["candidates"]:
            table = own_log_probs(reference, case, candidate["ids"])
            found = table.gather(1, torch.tensor(candidate["ids"])[:, None])[:, 0].numpy()
            np.testing.assert_allclose(found, candidate["log_probs"], atol=2e-4, err_msg=case["name"])


def test_greedy_continuations(reference: Reference) -> None:
    for case in cases("greedy"):
        best = own_log_probs(reference, case, case["generated_ids"]).argmax(-1).tolist()
        assert best == case["generated_ids"] or case["smallest_margin"] < 1e-3, case["name"]


def test_positions(reference: Reference) -> None:
    for case in cases("positions"):
        images = [type("Grid", (), {"grid": grid})() for grid in case["grids"]]
        found, _ = mrope_positions(np.array(case["expanded_ids"]), images, reference.pad_id, 2)
        assert found.tolist() == case["positions"], case["name"]


def test_pixels(reference: Reference) -> None:
    spec = ImageSpec.load(texts.MODEL)
    for case in cases("pixels"):
        pixels = preprocess(reference.picture(case["image"]), spec)
        assert list(pixels.grid) == case["grid"]
        np.testing.assert_allclose(pixels.patches.ravel()[:: case["stride"]], case["samples"], atol=2e-6)


def test_tokenizer(reference: Reference) -> None:
    for case in cases("tokenizer"):
        assert reference.ids(case["text"]) == case["ids"], case["text"]
