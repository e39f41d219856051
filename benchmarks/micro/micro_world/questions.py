"""Questions of the world with their gold trajectories: which need arises at each turn, the action, what comes back.

The observations are what the real tools return for the gold actions on an exported corpus; training draws the same
distribution without building one. `export.py` checks that the two agree.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from .entities import Entity, NamePool, draw_entity, draw_facts
from .lexicon import ATTRIBUTE_NAMES, CAPITALS
from .render import Scene, crop, random_scene, render

VISION = "<|vision_start|><|image_pad|><|vision_end|>"
GENERAL, FROM_IMAGE, ZOOM = "r_GENERAL_KNOW", "r_ANSWER_FROM_IMAGE", "r_ZOOM_DETAIL"
IDENTIFY, LOOKUP, FROM_EVIDENCE = "r_IDENTIFY_BY_IMAGE", "r_LOOKUP_FACT", "r_ANSWER_FROM_EVIDENCE"


@dataclass(frozen=True)
class Turn:
    """One gold turn; the last has no observation."""

    reasoning: str
    action: str
    observation_text: str | None = None
    observation_images: list[np.ndarray] = field(default_factory=list)


@dataclass(frozen=True)
class Question:
    """A question, its picture (None: no picture), its gold turns, and the entities its corpus must hold."""

    type: str
    text: str
    scene: Scene | None
    image: np.ndarray | None
    turns: list[Turn]
    answer: str
    entities: list[Entity] = field(default_factory=list)
    pictured: str | None = None


@dataclass(frozen=True)
class Style:
    """How observations vary. An exported corpus decides these by itself; training draws them."""

    swap_results: float = 0.0
    thumbnails: float = 0.0
    no_image: float = 0.0


EXPORT_STYLE = Style()
TRAINING_STYLE = Style(swap_results=0.3, thumbnails=0.15, no_image=0.15)


def answer(value: str) -> str:
    return f"<answer> {value}</answer>"


def tool_call(name: str, arguments: dict[str, object]) -> str:
    return f"<tool_call>{json.dumps({'name': name, 'arguments': arguments}, ensure_ascii=False)}</tool_call>"


def text_search(query: str) -> str:
    return tool_call("text_search_tool", {"query": query})


def numbered(lines: list[str]) -> str:
    return "\n".join(f"{index}. {line}" for index, line in enumerate(lines, 1))


@dataclass
class Builder:
    """Draws questions of one name group, with observations in one style."""

    names: NamePool
    style: Style

    def build(self, rng: np.random.Generator, type_name: str) -> Question:
        if type_name not in QUESTION_TYPES:
            raise ValueError(f"expected a question type of {sorted(QUESTION_TYPES)}, got {type_name!r}")
        return QUESTION_TYPES[type_name](self, rng, type_name)

    def colour(self, rng: np.random.Generator, type_name: str) -> Question:
        scene = random_scene(rng)
        text = _pick(rng, "What colour is the shape?", "Name the colour of the shape.")
        return _from_image(type_name, text, scene, scene.colour_name)

    def shape(self, rng: np.random.Generator, type_name: str) -> Question:
        scene = random_scene(rng)
        text = _pick(rng, "What shape is in the centre?", "Name the shape in the centre.")
        return _from_image(type_name, text, scene, scene.shape_name)

    def tile_plain(self, rng: np.random.Generator, type_name: str) -> Question:
        scene = random_scene(rng, tile_fine=False)
        return _from_image(type_name, _tile_text(rng), scene, scene.tile_colour_name)

    def tile_fine(self, rng: np.random.Generator, type_name: str) -> Question:
        scene = random_scene(rng, tile_fine=True, tile_small=type_name == "tile-small")
        picture, box = render(scene), scene.tile_box
        zoom = tool_call("image_zoom_in_tool", {"bbox_2d": list(box), "label": "tile", "img_idx": 0})
        turns = [
            Turn(ZOOM, zoom, f"Image 1: {VISION}", [crop(picture, box)]),
            Turn(FROM_EVIDENCE, answer(scene.tile_colour_name)),
        ]
        return Question(type_name, _tile_text(rng), scene, picture, turns, scene.tile_colour_name)

    def name(self, rng: np.random.Generator, type_name: str) -> Question:
        scene = random_scene(rng)
        entity = draw_entity(rng, self.names, "")
        text = _pick(rng, "Who is pictured here?", "Name the one pictured here.")
        picture = render(scene)
        turns = [self._identify(rng, entity.name, picture), Turn(FROM_EVIDENCE, answer(entity.name))]
        return Question(type_name, text, scene, picture, turns, entity.name, [entity], entity.name)

    def fact_of_pictured(self, rng: np.random.Generator, type_name: str) -> Question:
        scene, asked = random_scene(rng), _pick(rng, *ATTRIBUTE_NAMES)
        entity = draw_entity(rng, self.names, asked, aliased=rng.random() < 0.25)
        picture = render(scene)
        text = _pick(rng, f"What is the {asked} of the one pictured?", f"Name the {asked} of the one pictured.")
        turns = [self._identify(rng, entity.name, picture), *self._facts(rng, entity, asked)]
        return Question(type_name, text, scene, picture, turns, entity.facts[asked], [entity], entity.name)

    def fact_of_named(self, rng: np.random.Generator, type_name: str) -> Question:
        asked = _pick(rng, *ATTRIBUTE_NAMES)
        entity = draw_entity(rng, self.names, asked, aliased=rng.random() < 0.25)
        text = _pick(rng, f"What is the {asked} of {entity.name}?", f"Name the {asked} of {entity.name}.")
        scene = self._maybe_scene(rng)
        picture = None if scene is None else render(scene)
        return Question(type_name, text, scene, picture, self._facts(rng, entity, asked), entity.facts[asked], [entity])

    def general(self, rng: np.random.Generator, type_name: str) -> Question:
        country = _pick(rng, *CAPITALS)
        text = _pick(rng, f"What is the capital of {country}?", f"Name the capital of {country}.")
        scene = self._maybe_scene(rng)
        picture = None if scene is None else render(scene)
        turns = [Turn(GENERAL, answer(CAPITALS[country]))]
        return Question(type_name, text, scene, picture, turns, CAPITALS[country])

    def fact_crowded(self, rng: np.random.Generator, type_name: str) -> Question:
        """The search also returns the asked attribute of another entity, whose name shares a word."""
        asked, scene = _pick(rng, *ATTRIBUTE_NAMES), random_scene(rng)
        entity = Entity(self.names.draw(rng), _only(asked, draw_facts(rng)))
        rival = Entity(_rival_name(rng, self.names, entity.name), _only(asked, draw_facts(rng)))
        text = _pick(rng, f"What is the {asked} of {entity.name}?", f"Name the {asked} of {entity.name}.")
        results = [entity.record(asked), rival.record(asked)]
        if self.style.swap_results and rng.random() < 0.5:
            results.reverse()
        turns = [
            Turn(LOOKUP, text_search(f"{asked} of {entity.name}"), numbered(results)),
            Turn(FROM_EVIDENCE, answer(entity.facts[asked])),
        ]
        return Question(type_name, text, scene, render(scene), turns, entity.facts[asked], [entity, rival])

    def partner(self, rng: np.random.Generator, type_name: str) -> Question:
        """One more hop: a fact about the partner of a named or pictured entity."""
        scene, asked = random_scene(rng), _pick(rng, *ATTRIBUTE_NAMES)
        partner = draw_entity(rng, self.names, asked)
        entity = Entity(self.names.draw(rng, avoid=partner.name), draw_facts(rng), partner=partner.name)
        picture, of_pictured = render(scene), type_name == "partner-of-pictured"
        whose = f"the partner of {'the one pictured' if of_pictured else entity.name}"
        text = _pick(rng, f"What is the {asked} of {whose}?", f"Name the {asked} of {whose}.")
        other = entity.record(_pick(rng, *ATTRIBUTE_NAMES))
        turns = [
            *([self._identify(rng, entity.name, picture)] if of_pictured else []),
            Turn(LOOKUP, text_search(f"partner of {entity.name}"), self._results(rng, entity.partner_record, other)),
            *self._facts(rng, partner, asked),
        ]
        pictured = entity.name if of_pictured else None
        return Question(type_name, text, scene, picture, turns, partner.facts[asked], [entity, partner], pictured)

    def _maybe_scene(self, rng: np.random.Generator) -> Scene | None:
        return None if self.style.no_image and rng.random() < self.style.no_image else random_scene(rng)

    def _identify(self, rng: np.random.Generator, name: str, picture: np.ndarray) -> Turn:
        titles, thumbnails = [name, self.names.peek(rng, avoid=name)], []
        if self.style.thumbnails and rng.random() < self.style.thumbnails:
            titles, thumbnails = [f"{title} {VISION}" for title in titles], [picture, render(random_scene(rng))]
        return Turn(IDENTIFY, tool_call("image_search_tool", {}), numbered(titles), thumbnails)

    def _facts(self, rng: np.random.Generator, entity: Entity, asked: str) -> list[Turn]:
        """Look the asked fact up, through the alias if there is one, and answer."""
        others = [attribute for attribute in ATTRIBUTE_NAMES if attribute != asked]
        found = self._results(rng, entity.record(asked), entity.record(_pick(rng, *others)))
        turns = [Turn(LOOKUP, text_search(f"{asked} of {entity.filed_name}"), found)]
        if entity.alias_records:
            query = text_search(f"{asked} of {entity.name}")
            turns.insert(0, Turn(LOOKUP, query, self._results(rng, *entity.alias_records)))
        return [*turns, Turn(FROM_EVIDENCE, answer(entity.facts[asked]))]

    def _results(self, rng: np.random.Generator, first: str, second: str) -> str:
        swap = self.style.swap_results and rng.random() < self.style.swap_results
        return numbered([second, first] if swap else [first, second])


QUESTION_TYPES: dict[str, Callable[[Builder, np.random.Generator, str], Question]] = {
    "colour": Builder.colour,
    "shape": Builder.shape,
    "tile-plain": Builder.tile_plain,
    "tile-fine": Builder.tile_fine,
    "name": Builder.name,
    "fact-of-pictured": Builder.fact_of_pictured,
    "fact-of-named": Builder.fact_of_named,
    "general": Builder.general,
    "tile-small": Builder.tile_fine,
    "fact-crowded": Builder.fact_crowded,
    "partner-of-named": Builder.partner,
    "partner-of-pictured": Builder.partner,
}
PLAIN_TYPES = list(QUESTION_TYPES)[:8]
HARD_TYPES = list(QUESTION_TYPES)[8:]


def _pick(rng: np.random.Generator, *options: str) -> str:
    return options[int(rng.integers(len(options)))]


def _only(attribute: str, facts: dict[str, str]) -> dict[str, str]:
    return {attribute: facts[attribute]}


def _tile_text(rng: np.random.Generator) -> str:
    return _pick(rng, "What colour is the tile?", "Name the colour of the tile.")


def _from_image(type_name: str, text: str, scene: Scene, value: str) -> Question:
    return Question(type_name, text, scene, render(scene), [Turn(FROM_IMAGE, answer(value))], value)


def _rival_name(rng: np.random.Generator, names: NamePool, name: str) -> str:
    """Half the rivals carry the same two words in the other order: a search by words cannot tell them apart."""
    if rng.random() < 0.5:
        return " ".join(reversed(name.split()))
    return names.draw_like(rng, name)

