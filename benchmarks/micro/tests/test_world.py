"""What the world promises by construction."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from micro_world.entities import NamePool
from micro_world.export import SPLITS, export
from micro_world.lexicon import COLOUR_NAMES, all_words, name_pairs
from micro_world.questions import (
    EXPORT_STYLE,
    FROM_EVIDENCE,
    FROM_IMAGE,
    GENERAL,
    IDENTIFY,
    LOOKUP,
    PLAIN_TYPES,
    QUESTION_TYPES,
    ZOOM,
    Builder,
)
from micro_world.render import SIDE_PX, crop, png_bytes, random_scene, render
from micro_world.retrieval import Bm25

DATA = Path(__file__).resolve().parents[1] / "data"
SEEDS = {"plain": 7001, "hard": 7002, "dev": 7003}
NEEDS = {GENERAL, FROM_IMAGE, ZOOM, IDENTIFY, LOOKUP, FROM_EVIDENCE}


def at_model_size(pixels: np.ndarray) -> np.ndarray:
    return np.asarray(Image.fromarray(pixels).resize((128, 128), Image.Resampling.BICUBIC)).astype(int)


@pytest.mark.parametrize("small", [False, True])
def test_fine_tiles_look_alike_until_they_are_cropped(small: bool) -> None:
    rng = np.random.default_rng(3)
    for _ in range(6):
        scene = random_scene(rng, tile_fine=True, tile_small=small)
        pictures = [render(replace(scene, tile_colour=colour)) for colour in range(len(COLOUR_NAMES))]
        whole = [at_model_size(picture) for picture in pictures]
        crops = [at_model_size(crop(picture, scene.tile_box)) for picture in pictures]
        for i in range(len(pictures)):
            for j in range(i):
                assert abs(whole[i] - whole[j]).max() <= 2
                assert np.sqrt(((crops[i] - crops[j]) ** 2).mean()) > (8 if small else 18)


def test_plain_and_fine_tiles_share_their_questions_but_not_their_need() -> None:
    builder, rng = Builder(NamePool("train", unique=False), EXPORT_STYLE), np.random.default_rng(0)
    plain = [builder.build(rng, "tile-plain") for _ in range(20)]
    fine = [builder.build(rng, "tile-fine") for _ in range(20)]
    assert {q.text for q in plain} == {q.text for q in fine}
    assert {q.turns[0].reasoning for q in plain} == {"r_ANSWER_FROM_IMAGE"}
    assert {q.turns[0].reasoning for q in fine} == {"r_ZOOM_DETAIL"}


def test_words_of_the_world_are_unambiguous() -> None:
    words = [word.lower() for word in all_words()]
    assert len(set(words)) == len(words)


def test_name_groups_are_disjoint() -> None:
    train, dev, test = (set(name_pairs(group)) for group in ("train", "dev", "test"))
    assert not train & dev and not train & test and not dev & test and len(train | dev | test) == 64 * 64


def test_no_gold_trajectory_takes_more_than_four_turns() -> None:
    builder, rng = Builder(NamePool("train", unique=False), EXPORT_STYLE), np.random.default_rng(0)
    assert max(len(builder.build(rng, name).turns) for name in QUESTION_TYPES for _ in range(40)) == 4


def test_palette_png_is_lossless() -> None:
    picture = render(random_scene(np.random.default_rng(9), tile_fine=True))
    again = np.asarray(Image.open(io.BytesIO(png_bytes(picture))).convert("RGB"))
    assert again.shape == (SIDE_PX, SIDE_PX, 3) and np.array_equal(again, picture)


@pytest.mark.parametrize("split", sorted(SEEDS))
def test_committed_split_is_what_its_seed_gives(split: str, tmp_path: Path) -> None:
    manifest = export(split, SEEDS[split], tmp_path / split)
    committed = json.loads((DATA / split / "manifest.json").read_text())
    assert manifest == committed
    assert {p.name for p in (tmp_path / split / "images").iterdir()} == {p.name for p in (DATA / split / "images").iterdir()}


@pytest.mark.parametrize("split", sorted(SEEDS))
def test_committed_split_keeps_to_its_names(split: str) -> None:
    group = SPLITS[split][0]
    text = (DATA / split / "passages.jsonl").read_text() + (DATA / split / "pictures.jsonl").read_text()
    assert not any(name in text for other in ("train", "dev", "test") if other != group for name in name_pairs(other))


def test_all_six_needs_occur_in_the_plain_split() -> None:
    lines = [json.loads(line) for line in (DATA / "plain/index.jsonl").read_text().splitlines()]
    assert len(lines) == 400 and {line["type"] for line in lines} == set(PLAIN_TYPES)
    assert {need for line in lines for need in line["expected"]} == NEEDS


def test_bm25_prefers_the_record_that_holds_every_word() -> None:
    engine = Bm25(["Kalo Venn city: Lyon.", "Kalo Venn flower: rose.", "Mira Dast city: Porto."])
    assert engine.best("city of Kalo Venn", 2) == ["Kalo Venn city: Lyon.", "Kalo Venn flower: rose."]
