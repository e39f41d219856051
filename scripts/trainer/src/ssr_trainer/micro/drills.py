"""Drills before SFT: short copying and seeing exercises, without which SFT from random weights learns nothing.

Each drill is a user turn, perhaps a picture, and a target in the form that the agent will need; the loss is the mean
negative log-probability of the target's tokens.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from micro_world.entities import NamePool, draw_entity
from micro_world.lexicon import ATTRIBUTE_NAMES, CAPITALS, all_words
from micro_world.questions import answer, numbered, text_search, tool_call
from micro_world.render import crop, random_scene, render
from transformers import Qwen3VLForConditionalGeneration

from ..dialect import action_part, question_part
from ..images import preprocess
from ..loss import hidden_states
from ..packing import PackedRow, collate, mrope_positions
from ..trajectories import Encoder


@dataclass(frozen=True)
class Drill:
    kind: str
    user: str
    target: str
    image: np.ndarray | None = None


def _repeat(rng: np.random.Generator, names: NamePool) -> Drill:
    words = " ".join(rng.choice(all_words(), size=int(rng.integers(4, 9)), replace=False))
    return Drill("repeat", f" {words}", f" {words}")


def _query(rng: np.random.Generator, names: NamePool) -> Drill:
    attribute, name = rng.choice([*ATTRIBUTE_NAMES, "partner"]), names.draw(rng)
    text = rng.choice([f"What is the {attribute} of {name}?", f"Name the {attribute} of {name}."])
    return Drill("query", str(text), text_search(f"{attribute} of {name}"))


def _name(rng: np.random.Generator, names: NamePool) -> Drill:
    titles = [names.draw(rng) for _ in range(2)]
    return Drill("name", numbered(titles), answer(titles[0]))


def _look_up(rng: np.random.Generator, names: NamePool) -> Drill:
    entity, asked = draw_entity(rng, names, ""), str(rng.choice(ATTRIBUTE_NAMES))
    count = int(rng.integers(2, 5))
    shown = [asked, *rng.permutation([name for name in ATTRIBUTE_NAMES if name != asked])[: count - 1]]
    records = numbered([entity.record(str(name)) for name in rng.permutation(shown)])
    return Drill("look-up", f"What is the {asked} of {entity.name}?\n{records}", answer(entity.facts[asked]))


def _chain(rng: np.random.Generator, names: NamePool) -> Drill:
    """The next query, once an image search or an alias record has given a name."""
    asked, (name, other) = str(rng.choice(ATTRIBUTE_NAMES)), (names.draw(rng), names.draw(rng))
    if rng.random() < 0.5:
        user = f"What is the {asked} of the one pictured?\n{numbered([name, other])}"
        return Drill("chain", user, text_search(f"{asked} of {name}"))
    entity = draw_entity(rng, names, asked, aliased=True)
    user = f"What is the {asked} of {entity.name}?\n{numbered([str(r) for r in rng.permutation(entity.alias_records)])}"
    return Drill("chain", user, text_search(f"{asked} of {entity.alias}"))


def _general(rng: np.random.Generator, names: NamePool) -> Drill:
    country = str(rng.choice(list(CAPITALS)))
    return Drill("general", f"What is the capital of {country}?", answer(CAPITALS[country]))


def _caption(rng: np.random.Generator, names: NamePool) -> Drill:
    scene = random_scene(rng)
    tile = "detail" if scene.tile_fine else scene.tile_colour_name
    return Drill("caption", "Name the shape", f" {scene.shape_name} {scene.colour_name} tile {tile}", render(scene))


def _zoom(rng: np.random.Generator, names: NamePool) -> Drill:
    scene = random_scene(rng, tile_fine=True)
    call = tool_call("image_zoom_in_tool", {"bbox_2d": list(scene.tile_box), "label": "tile", "img_idx": 0})
    return Drill("zoom", "What colour is the tile?", call, render(scene))


def _crop_colour(rng: np.random.Generator, names: NamePool) -> Drill:
    scene = random_scene(rng, tile_fine=True, tile_small=rng.random() < 0.2)
    return Drill("crop-colour", "Image 1:", answer(scene.tile_colour_name), crop(render(scene), scene.tile_box))


DRILLS: dict[str, tuple[Callable[[np.random.Generator, NamePool], Drill], float]] = {
    "repeat": (_repeat, 1.0),
    "query": (_query, 1.0),
    "name": (_name, 1.0),
    "look-up": (_look_up, 1.5),
    "chain": (_chain, 1.0),
    "general": (_general, 0.5),
    "caption": (_caption, 2.0),
    "zoom": (_zoom, 1.0),
    "crop-colour": (_crop_colour, 1.0),
}


class DrillTask:
    def __init__(self, encoder: Encoder, seed: int, samples_per_step: int = 80, rows_per_pass: int = 40) -> None:
        self._encoder, self._seed = encoder, seed
        self._samples, self._rows_per_pass = samples_per_step, rows_per_pass
        rng, names = np.random.default_rng([seed, 5]), NamePool("dev", unique=False)
        self._held_out = [make(rng, names) for make, _ in DRILLS.values() for _ in range(20)]

    def backward(self, model: Qwen3VLForConditionalGeneration, step: int) -> dict[str, float]:
        rng, names = np.random.default_rng([self._seed, 4, step]), NamePool("train", unique=False)
        weights = np.array([weight for _, weight in DRILLS.values()])
        makers = [make for make, _ in DRILLS.values()]
        drawn = rng.choice(len(makers), size=self._samples, p=weights / weights.sum())
        total = 0.0
        for group in self._groups([makers[kind](rng, names) for kind in drawn]):
            losses = [-log_probs.mean() for log_probs, _ in self._forward(model, group)]
            loss = torch.stack(losses).sum() / self._samples
            loss.backward()
            total += float(loss.detach())
        return {"loss": total}

    @torch.no_grad()
    def evaluate(self, model: Qwen3VLForConditionalGeneration) -> dict[str, float]:
        """Share of drills whose target is wholly greedy, per kind."""
        right: dict[str, list[bool]] = {}
        for group in self._groups(self._held_out):
            for (drill, _, _), (_, greedy) in zip(group, self._forward(model, group), strict=True):
                right.setdefault(drill.kind, []).append(bool(greedy.all()))
        return {kind: sum(values) / len(values) for kind, values in sorted(right.items())}

    def _groups(self, drills: list[Drill]) -> list[list[tuple[Drill, PackedRow, int]]]:
        rows = [(drill, *self._row(drill)) for drill in drills]
        rows.sort(key=lambda item: len(item[1].ids))
        return [rows[start : start + self._rows_per_pass] for start in range(0, len(rows), self._rows_per_pass)]

    def _row(self, drill: Drill) -> tuple[PackedRow, int]:
        """A row without branches, and where its target starts."""
        encoder = self._encoder
        images = [] if drill.image is None else [preprocess(drill.image, encoder.spec)]
        prompt = encoder.expand(encoder.ids(question_part(drill.user, len(images))), images)
        ids = np.array(prompt + encoder.ids(action_part(drill.target)))
        positions, _ = mrope_positions(ids, images, encoder.pad_id, encoder.spec.merge)
        length = len(ids)
        row = PackedRow(ids, np.zeros(length, int), np.arange(1, length + 1), positions, [], images, drill.kind)
        return row, len(prompt)

    def _forward(
        self, model: Qwen3VLForConditionalGeneration, group: list[tuple[Drill, PackedRow, int]]
    ) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Per drill the log-probs of its target's tokens and whether each is the greedy one."""
        batch = collate([row for _, row, _ in group], self._encoder.ids("\n")[0])
        hidden = hidden_states(model, batch)
        sizes = [len(row.ids) - start for _, row, start in group]
        at = [(i, p) for i, (_, row, start) in enumerate(group) for p in range(start - 1, len(row.ids) - 1)]
        rows, predictors = (list(part) for part in zip(*at, strict=True))
        targets = batch.ids[rows, [p + 1 for p in predictors]].to(hidden.device)
        logits = model.lm_head(hidden[rows, predictors]).float()
        log_probs = -torch.nn.functional.cross_entropy(logits, targets, reduction="none")
        return list(zip(log_probs.split(sizes), (logits.argmax(-1) == targets).split(sizes), strict=True))
