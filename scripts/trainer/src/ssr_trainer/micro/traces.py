"""Written reasoning for the freeform twin: before each gold action a trace of 60 to 150 tokens, from the gold trajectory.

A trace restates the evidence in five steps, in this order: what is asked, what the picture shows, what is known, what is
missing, what to do. It uses nothing that the model cannot know at that turn. Each sentence has three wordings; the caller's
generator, which is not the one that draws questions, draws one way of wording per trajectory, or freely for every sentence.
The words are those of the prompt, the library and the world, so that most are one token of the micro tokenizer.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
from micro_world.questions import FROM_EVIDENCE, FROM_IMAGE, GENERAL, IDENTIFY, LOOKUP, ZOOM, Question, Turn

MIN_TOKENS, MAX_TOKENS = 60, 150
WAYS = 3
Choice = Callable[[], int]

ASKED = (
    "I should answer the question that is asked: {question}",
    "The question that I should settle is this: {question}",
    "What is asked now is the question: {question}",
)
NO_PICTURE = (
    "It is asked without a picture, so I do not see the subject.",
    "I see no picture here, and so I should answer without the image.",
    "This is a question without a picture to look at.",
)
# The tile's place is said as the corner at which a zoom into its cell would begin, on the 0..1000 scale.
SEEN = (
    "The picture shows {subject} in the centre, with one tile at {x}, {y}.",
    "I see {subject} in the picture, with one tile at {x}, {y}.",
    "What I see is {subject} in the centre, with one tile at {x}, {y}.",
)
KNOWN_NOTHING = (
    "I have gathered no fact about it so far.",
    "So far I know no fact about the subject.",
    "No fact about it is known to me so far.",
)
KNOWN_TILE = (
    "The tile itself clearly shows its colour, and it is {value}.",
    "The tile is {value}, and I can see this colour directly.",
    "I can read the colour of the tile from the image: {value}.",
)
KNOWN_SHAPE_COLOUR = (
    "The picture itself clearly shows that the colour of the shape is {value}.",
    "The shape is {value}, and I can see this colour directly.",
    "I can read the colour of the shape from the image: {value}.",
)
KNOWN_SHAPE = (
    "The picture itself clearly shows that the shape is a {value}.",
    "The shape in the centre is a {value}, and I can see it directly.",
    "I can read the shape from the image: {value}.",
)
KNOWN_GENERAL = (
    "I already know this fact from general knowledge: the {fact} is {value}.",
    "From general knowledge I know directly that the {fact} is {value}.",
    "I know without searching that the {fact} is {value}.",
)
FOUND_PICTURED = (
    "The image results show that the one pictured is {name}.",
    "From the image search I know the one pictured: {name}.",
    "I have searched with the image, and it is {name}.",
)
FOUND_RECORD = (
    "The text results show this fact: {record}",
    "From the text search I know this: {record}",
    "I have searched the text and read there: {record}",
)
FOUND_COLOUR = (
    "I have zoomed into that region, and inside it the tile is {value}.",
    "The zoom clearly shows that the colour of the tile is {value}.",
    "Inside the region I can now see that the tile is {value}.",
)
MISSING: dict[str, tuple[str, str, str]] = {
    ZOOM: (
        "What is missing is the colour of the tile, a detail that is too small to see.",
        "The detail that matters is missing: the colour of the tile is too small to read.",
        "I do not see the colour of the tile, so this detail is missing.",
    ),
    IDENTIFY: (
        "What is missing is who is pictured here.",
        "I do not recognise the one pictured, so the name is missing.",
        "The name of the one pictured is missing, and I do not know it.",
    ),
    LOOKUP: (
        "What is missing is the {query}.",
        "The {query} is a fact that is missing.",
        "I do not know the {query} so far.",
    ),
}
MISSING_NOTHING = (
    "No fact that matters is missing now.",
    "This is enough, and no detail is missing.",
    "What I know is enough to settle the question.",
)
TO_DO: dict[str, tuple[str, str, str]] = {
    ZOOM: (
        "Now I should zoom into that region first.",
        "First I should zoom into the region of the tile.",
        "I can zoom into the tile, and this I should do now.",
    ),
    IDENTIFY: (
        "Now I should search with the image first.",
        "First I should search with the image itself.",
        "I can search with the image, and this I should do now.",
    ),
    LOOKUP: (
        "Now I should search the text for the {query}.",
        "I can search the text for it: {query}.",
        "First I should look for the {query} in the text.",
    ),
}
TO_ANSWER = (
    "Now I can give the answer, and it is {value}.",
    "I should give the answer directly: {value}.",
    "The answer that I can give now is {value}.",
)


def traces(question: Question, rng: np.random.Generator, *, free: bool = False) -> list[str]:
    """One trace per gold turn; `free`: every sentence draws its own wording."""
    way = 0 if free else int(rng.integers(WAYS))

    def choose() -> int:
        return int(rng.integers(WAYS)) if free else way

    return [_trace(question, number, choose) for number in range(len(question.turns))]


def _trace(question: Question, number: int, choose: Choice) -> str:
    turn, past = question.turns[number], question.turns[:number]
    query = search_query(turn) if turn.reasoning == LOOKUP else ""
    steps = [
        _word(choose, ASKED, question=question.text),
        _seen(question, choose),
        *_known(question, turn, past, choose),
        _word(choose, MISSING.get(turn.reasoning, MISSING_NOTHING), query=query),
        _word(choose, TO_DO.get(turn.reasoning, TO_ANSWER), query=query, value=question.answer),
    ]
    return " ".join(steps)


def search_query(turn: Turn) -> str:
    """What a text search asks for: "ATTRIBUTE of NAME"."""
    return json.loads(turn.action.removeprefix("<tool_call>").removesuffix("</tool_call>"))["arguments"]["query"]


def _seen(question: Question, choose: Choice) -> str:
    scene = question.scene
    if scene is None:
        return _word(choose, NO_PICTURE)
    article = "an" if scene.colour_name == "orange" else "a"
    x, y, _, _ = scene.tile_box
    return _word(choose, SEEN, subject=f"{article} {scene.colour_name} {scene.shape_name}", x=x, y=y)


def _known(question: Question, turn: Turn, past: list[Turn], choose: Choice) -> list[str]:
    """What earlier turns have brought, or what is known at once."""
    found = [_found(question, earlier, choose) for earlier in past]
    if turn.reasoning == FROM_IMAGE:
        kinds = {"colour": KNOWN_SHAPE_COLOUR, "shape": KNOWN_SHAPE, "tile-plain": KNOWN_TILE}
        return [_word(choose, kinds[question.type], value=question.answer)]
    if turn.reasoning == GENERAL:
        fact = question.text.rstrip("?.").removeprefix("What is the ").removeprefix("Name the ")
        return [_word(choose, KNOWN_GENERAL, fact=fact, value=question.answer)]
    return found or [_word(choose, KNOWN_NOTHING)]


def _found(question: Question, turn: Turn, choose: Choice) -> str:
    if turn.reasoning == IDENTIFY:
        return _word(choose, FOUND_PICTURED, name=question.pictured)
    if turn.reasoning == ZOOM:
        return _word(choose, FOUND_COLOUR, value=question.answer)
    return _word(choose, FOUND_RECORD, record=_useful_record(turn))


def _useful_record(turn: Turn) -> str:
    """The result of a text search that answers its query, or names the alias to ask for next."""
    asked, subject = search_query(turn).split(" of ", 1)
    records = [line.split(". ", 1)[1] for line in (turn.observation_text or "").split("\n")]
    useful = [record for record in records if record.startswith((f"{subject} {asked}:", f"{subject} alias:"))]
    if len(useful) != 1:
        raise ValueError(f"expected one record that answers {asked!r} of {subject!r}, got {records}")
    return useful[0]


def _word(choose: Choice, wordings: tuple[str, ...], **values: str | int | None) -> str:
    return wordings[choose()].format(**values)
