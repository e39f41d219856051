"""Writes one split to disk: `python -m micro_world.export --split plain --seed 20261130 --out data/plain`."""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
from collections import Counter
from pathlib import Path

import numpy as np

from . import GENERATOR_VERSION
from .entities import Entity, NamePool, draw_entity
from .questions import EXPORT_STYLE, HARD_TYPES, LOOKUP, PLAIN_TYPES, Builder, Question
from .render import png_bytes, random_scene, render
from .retrieval import Bm25, descriptor

SPLITS: dict[str, tuple[str, int, list[str]]] = {
    "plain": ("test", 400, PLAIN_TYPES),
    "hard": ("test", 400, HARD_TYPES),
    "dev": ("dev", 200, PLAIN_TYPES),
    # Questions for training by reinforcement, with training names; made when needed, not shipped.
    "train": ("train", 1200, PLAIN_TYPES),
}
FILLER_ENTITIES = 60
MAX_ATTEMPTS = 20
# Mean squared difference per descriptor value under which two pictures count as too alike for the reverse-image search.
MIN_PICTURE_DISTANCE = 12.0


def main() -> None:
    parser = argparse.ArgumentParser(description="Generate one split of the micro benchmark.")
    parser.add_argument("--split", required=True, choices=sorted(SPLITS))
    parser.add_argument("--seed", required=True, type=int)
    parser.add_argument("--out", required=True, type=Path)
    options = parser.parse_args()
    manifest = export(options.split, options.seed, options.out)
    print(f"{options.split}: {manifest['questions']} questions in {options.out}")


def export(split: str, seed: int, out: Path) -> dict[str, object]:
    """Generate, check against the real searches' rules, write; returns the manifest. `out` is replaced."""
    questions, passages, gallery, rng = draw_checked(split, seed)
    if out.exists():
        shutil.rmtree(out)
    (out / "images").mkdir(parents=True)
    index = [_index_line(split, number, question, out) for number, question in enumerate(questions, 1)]
    pictures = [{"image": _save(picture, out), "title": title} for title, picture in gallery.titled]
    pictures = [pictures[position] for position in rng.permutation(len(pictures))]
    corpus = [{"id": f"{split}-{number:04d}", "text": text} for number, text in enumerate(passages, 1)]
    digests = {
        name: _write_lines(out / name, lines)
        for name, lines in (("index.jsonl", index), ("passages.jsonl", corpus), ("pictures.jsonl", pictures))
    }
    manifest = {
        "schema": 1,
        "name": "micro",
        "split": split,
        "seed": seed,
        "generator_version": GENERATOR_VERSION,
        "questions": len(questions),
        "types": dict(Counter(question.type for question in questions)),
        "sha256": digests,
    }
    (out / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n")
    return manifest


def draw_checked(split: str, seed: int) -> tuple[list[Question], list[str], Gallery, np.random.Generator]:
    """Draws the split again, whole, while some gold query is answered by other entities' records (chance collisions)."""
    for attempt in range(MAX_ATTEMPTS):
        rng = np.random.default_rng([seed, sorted(SPLITS).index(split), attempt])
        questions, passages, gallery = _draw(split, rng)
        try:
            check_text_search(questions, passages)
        except ValueError:
            if attempt + 1 == MAX_ATTEMPTS:
                raise
            continue
        return questions, passages, gallery, rng
    raise AssertionError("unreachable")


def _draw(split: str, rng: np.random.Generator) -> tuple[list[Question], list[str], Gallery]:
    group, total, types = SPLITS[split]
    names, gallery = NamePool(group, unique=True), Gallery()
    builder = Builder(names, EXPORT_STYLE)
    questions = [_draw_question(rng, builder, types[number % len(types)], gallery) for number in range(total)]
    questions = [questions[index] for index in rng.permutation(total)]
    fillers = [draw_entity(rng, names, "") for _ in range(FILLER_ENTITIES)]
    passages = _passages(rng, [*(entity for question in questions for entity in question.entities), *fillers])
    for filler in fillers:
        gallery.add_filler(rng, filler.name)
    return questions, passages, gallery


class Gallery:
    """Pictures of a split, all distinguishable by the reverse-image descriptor; some carry a name."""

    def __init__(self) -> None:
        self._descriptors: list[np.ndarray] = []
        self.titled: list[tuple[str, np.ndarray]] = []

    def accepts(self, picture: np.ndarray) -> bool:
        if not self._descriptors:
            return True
        distances = ((np.stack(self._descriptors) - descriptor(picture)) ** 2).mean(axis=1)
        return bool(distances.min() >= MIN_PICTURE_DISTANCE)

    def add(self, picture: np.ndarray, title: str | None) -> None:
        self._descriptors.append(descriptor(picture))
        if title is not None:
            self.titled.append((title, picture))

    def add_filler(self, rng: np.random.Generator, title: str) -> None:
        while not self.accepts(picture := render(random_scene(rng))):
            pass
        self.add(picture, title)


def _draw_question(rng: np.random.Generator, builder: Builder, type_name: str, gallery: Gallery) -> Question:
    for _ in range(1000):
        question = builder.build(rng, type_name)
        assert question.image is not None, "exported questions have a picture"
        if gallery.accepts(question.image):
            gallery.add(question.image, question.pictured)
            return question
    raise ValueError(f"expected a distinguishable picture for {type_name!r} within 1000 draws")


def _passages(rng: np.random.Generator, entities: list[Entity]) -> list[str]:
    records = [record for entity in entities for record in entity.records()]
    if len(set(records)) != len(records):
        raise ValueError("expected every record once in the corpus: a name was used for two entities")
    return [records[index] for index in rng.permutation(len(records))]


def check_text_search(questions: list[Question], passages: list[str]) -> None:
    """Every gold query must return the record that the gold trajectory reads.

    In a plain split the other result must be about the same entity; in the hard split it may be anybody's.
    """
    engine = Bm25(passages)
    for question in questions:
        for turn in question.turns:
            if turn.reasoning != LOOKUP:
                continue
            query = json.loads(turn.action.removeprefix("<tool_call>").removesuffix("</tool_call>"))["arguments"]["query"]
            found = engine.best(query, 2)
            wanted = [line.split(". ", 1)[1] for line in (turn.observation_text or "").split("\n")]
            asked, subject = query.split(" of ", 1)
            key = [line for line in wanted if line.startswith((f"{subject} {asked}:", f"{subject} alias:"))]
            same = question.type in HARD_TYPES or all(line.startswith(f"{subject} ") for line in found)
            if len(key) != 1 or key[0] not in found or len(found) != 2 or not same:
                raise ValueError(f"expected {key} (and a record of the same entity) for {query!r}, the search found {found}")


def _index_line(split: str, number: int, question: Question, out: Path) -> dict[str, object]:
    assert question.image is not None
    return {
        "id": f"micro-{split}-{number:04d}",
        "type": question.type,
        "question": question.text,
        "images": [_save(question.image, out)],
        "answers": [question.answer],
        "expected": [turn.reasoning for turn in question.turns],
    }


def _save(picture: np.ndarray, out: Path) -> str:
    data = png_bytes(picture)
    name = f"images/{hashlib.sha256(data).hexdigest()}.png"
    (out / name).write_bytes(data)
    return name


def _write_lines(path: Path, lines: list[dict[str, object]]) -> str:
    data = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines).encode()
    path.write_bytes(data)
    return hashlib.sha256(data).hexdigest()


if __name__ == "__main__":
    main()
