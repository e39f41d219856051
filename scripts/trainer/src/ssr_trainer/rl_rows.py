"""Rollouts as packed rows: the final sequence once, so that one forward pass gives every turn's log-probs.

With `branches` the losing candidates of every turn are packed behind it, and the trainer scores all N itself.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from .images import ImageSpec, Pixels, preprocess
from .library import Candidate, Library
from .packing import PackedRow, pack
from .rollouts import Header, Rollout
from .trajectories import EncodedTrajectory, EncodedTurn

WRITTEN = Library("written", (Candidate("written", "", ()),))


class RowPacker:
    """`rows` are in the order of the rollouts; pictures that several rollouts share are prepared once."""

    def __init__(self, spec: ImageSpec, cached_images: int = 512) -> None:
        self._spec = spec
        self._pixels = lru_cache(cached_images)(self._prepare)

    def row(self, rollout: Rollout, header: Header, *, branches: bool = False) -> PackedRow:
        written = rollout.turns[0].index is None
        library = WRITTEN if written else library_of(header)
        images = [self._pixels(path) for path in rollout.images]
        expand = Expander(images, header.image_pad_id)
        prompt = expand(rollout.ids[: rollout.turns[0].history])
        turns = []
        for turn in rollout.turns:
            reasoning_end = turn.history + turn.reasoning
            action_end = reasoning_end + turn.action
            start = turn.history if written else reasoning_end
            observation = expand(rollout.ids[action_end : action_end + turn.observation])
            chosen = 0 if turn.index is None else turn.index
            turns.append(EncodedTurn(chosen, list(rollout.ids[start:action_end]), observation))
        encoded = EncodedTrajectory(rollout.id, "", prompt, turns, images)
        branch_turns = set(range(len(turns))) if branches and not written else set()
        return pack(encoded, library, branch_turns, header.image_pad_id, self._spec.merge)

    def _prepare(self, path: Path) -> Pixels:
        return preprocess(path, self._spec)


class Expander:
    """Replaces each image_pad, in the order of the pictures, by as many as its picture has tokens."""

    def __init__(self, images: list[Pixels], pad_id: int) -> None:
        self._waiting, self._pad_id = iter(images), pad_id

    def __call__(self, ids: tuple[int, ...]) -> list[int]:
        expanded: list[int] = []
        for token in ids:
            expanded.extend([token] * next(self._waiting).tokens if token == self._pad_id else [token])
        return expanded


@lru_cache(8)
def library_of(header: Header) -> Library:
    candidates = zip(header.candidate_names, header.candidates, strict=True)
    return Library("rollout", tuple(Candidate(name, "", ids) for name, ids in candidates))
