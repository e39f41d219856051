"""The histories that the golden files cover, as parts of text and images."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from micro_world.questions import PLAIN_TYPES, Question
from micro_world.render import png_bytes

from .. import dialect
from ..library import Library
from . import texts

NON_SQUARE_BOX = [100, 200, 700, 450]


@dataclass
class History:
    """A history h_t as parts of text, each encoded on its own; images as {"path", "bbox_2d"}."""

    name: str
    parts: list[str]
    images: list[dict[str, object]] = field(default_factory=list)


def history_of(question: Question, turn: int, library: Library, *, with_image: bool = True) -> History:
    """h_t of a question's gold trajectory."""
    history = History(f"{question.type}, turn {turn}", [dialect.system_part(texts.SYSTEM_PROMPT.read_text())])
    if with_image:
        history.images.append(source_image(question))
    history.parts.append(dialect.question_part(question.text, len(history.images)))
    for past in question.turns[:turn]:
        _append_turn(history, library, past.reasoning, past.action, past.observation_text or "")
        if past.observation_images:
            history.images.append({**source_image(question), "bbox_2d": list(question.scene.tile_box)})
    return history


def _append_turn(history: History, library: Library, reasoning: str, action: str, observation: str) -> None:
    history.parts.append(_wrapped(library, reasoning))
    history.parts.append(dialect.action_part(action))
    history.parts.append(dialect.observation_part(observation))


def _wrapped(library: Library, candidate_id: str) -> str:
    return dialect.reasoning_part(library.candidates[library.index(candidate_id)].text)


def source_image(question: Question) -> dict[str, object]:
    return {"path": f"dev/images/{hashlib.sha256(png_bytes(question.image)).hexdigest()}.png", "bbox_2d": None}


def of_type(questions: list[Question], type_name: str) -> list[Question]:
    return [question for question in questions if question.type == type_name]


def score_histories(questions: list[Question], library: Library) -> list[History]:
    """No image (two), one image (first and later turns; a non-square one), two images, three images (two kinds)."""
    named, pictured = of_type(questions, "fact-of-named")[0], of_type(questions, "fact-of-pictured")[0]
    fine, general = of_type(questions, "tile-fine")[0], of_type(questions, "general")[0]
    name = of_type(questions, "name")[0]
    histories = [
        history_of(general, 0, library, with_image=False),
        history_of(named, 1, library, with_image=False),
        *(history_of(of_type(questions, kind)[0], 0, library) for kind in PLAIN_TYPES),
        history_of(pictured, 1, library),
        history_of(pictured, 2, library),
        history_of(fine, 1, library),
    ]
    non_square = history_of(of_type(questions, "colour")[1], 0, library)
    non_square.name, non_square.images[0]["bbox_2d"] = "non-square picture", NON_SQUARE_BOX
    cropped_twice = history_of(fine, 1, library)
    cropped_twice.name = "a crop, then a non-square crop"
    call = fine.turns[0].action.replace(str(list(fine.scene.tile_box)), str(NON_SQUARE_BOX))
    _append_turn(cropped_twice, library, fine.turns[0].reasoning, call, f"Image 2: {dialect.VISION}")
    cropped_twice.images.append({**source_image(fine), "bbox_2d": NON_SQUARE_BOX})
    thumbnails = history_of(name, 0, library)
    thumbnails.name = "image search with two thumbnails"
    body = "\n".join(f"{line} {dialect.VISION}" for line in (name.turns[0].observation_text or "").split("\n"))
    _append_turn(thumbnails, library, name.turns[0].reasoning, name.turns[0].action, body)
    thumbnails.images += [source_image(name), source_image(pictured)]
    return [*histories, non_square, cropped_twice, thumbnails]


def greedy_histories(questions: list[Question], library: Library, count: int) -> list[History]:
    """u_t = h_t and the gold candidate, at turns and types in rotation; every fourth without a picture where it fits."""
    histories: list[History] = []
    for number in range(count):
        kind = PLAIN_TYPES[number % len(PLAIN_TYPES)]
        question = of_type(questions, kind)[2 + number // len(PLAIN_TYPES)]
        turn = number // len(PLAIN_TYPES) % len(question.turns)
        with_image = not (kind in ("fact-of-named", "general") and number % 2 == number // len(PLAIN_TYPES) % 2)
        history = history_of(question, turn, library, with_image=with_image)
        history.parts.append(_wrapped(library, question.turns[turn].reasoning))
        histories.append(history)
    return histories
