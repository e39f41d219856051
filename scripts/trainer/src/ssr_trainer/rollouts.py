"""A minibatch of rollouts as `ssr rollout` writes it: rollouts.jsonl (one header, one line per trajectory) beside images/.

docs/training.md describes every field; test/golden/rollouts holds files that both test suites read. Reading checks what the
update relies on: one set of weights, spans inside the ids, the chosen candidate's ids in its place, a log-prob per action
token, one picture per image_pad.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

SCHEMA = 1
T = TypeVar("T")


@dataclass(frozen=True)
class Header:
    """What all trajectories of the minibatch share. `tau` and `temperature` are those the rollouts were drawn with."""

    weights: str
    reasoning: str
    alpha: float
    tau: float
    temperature: float
    image_pad_id: int
    candidate_names: tuple[str, ...]
    candidates: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class RolloutTurn:
    """Spans in sent ids: z at `history`, then a, then o. Where the model wrote z itself, `written` has its log-probs and
    there is no selection (`index`, `scores`, `log_q` are None)."""

    history: int
    reasoning: int
    action: int
    observation: int
    index: int | None
    scores: tuple[float, ...] | None
    log_q: float | None
    written: tuple[float, ...] | None
    action_log_probs: tuple[float, ...]


@dataclass(frozen=True)
class Rollout:
    """`reward` is None where there is no verdict: the trajectory is masked out. `images` in the order of their pads."""

    id: str
    question: str
    reward: float | None
    ids: tuple[int, ...]
    images: tuple[Path, ...]
    turns: tuple[RolloutTurn, ...]


@dataclass(frozen=True)
class Minibatch:
    header: Header
    rollouts: tuple[Rollout, ...]


def read_minibatch(folder: Path) -> Minibatch:
    """Throws ValueError naming the line and what was expected there."""
    path = folder / "rollouts.jsonl"
    lines = [line for line in path.read_text().splitlines() if line]
    if not lines:
        raise ValueError(f"expected a header and trajectories in {path}, found nothing")
    header = _parsed(path, 1, lines[0], _header)
    rollouts = [_parsed(path, n, line, lambda raw: _rollout(raw, header, folder)) for n, line in enumerate(lines[1:], 2)]
    if not rollouts:
        raise ValueError(f"expected trajectories in {path}, found only a header")
    return Minibatch(header, tuple(rollouts))


def _parsed(path: Path, number: int, line: str, parse: Callable[[dict[str, Any]], T]) -> T:
    try:
        return parse(json.loads(line))
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"line {number} of {path}: {error if isinstance(error, ValueError) else repr(error)}") from error


def _header(raw: dict[str, Any]) -> Header:
    if raw["kind"] != "header" or raw["schema"] != SCHEMA:
        raise ValueError(f"expected a header of schema {SCHEMA}, got kind {raw['kind']!r}, schema {raw.get('schema')!r}")
    candidates = raw["library"]["candidates"]
    return Header(
        weights=raw["weights"],
        reasoning=raw["reasoning"],
        alpha=raw["alpha"],
        tau=raw["tau"],
        temperature=raw["temperature"],
        image_pad_id=raw["imagePadId"],
        candidate_names=tuple(candidate["id"] for candidate in candidates),
        candidates=tuple(tuple(candidate["ids"]) for candidate in candidates),
    )


def _rollout(raw: dict[str, Any], header: Header, folder: Path) -> Rollout:
    if raw["weights"] != header.weights:
        raise ValueError(f"expected weights {header.weights} as in the header, got {raw['weights']}: mixed weight versions")
    ids = tuple(raw["ids"])
    images = tuple(folder / image["file"] for image in raw["images"])
    pads = sum(token == header.image_pad_id for token in ids)
    if pads != len(images):
        raise ValueError(f"expected one picture per image_pad of {raw['id']}, got {pads} pads and {len(images)} pictures")
    turns = tuple(_turn(turn, ids, header) for turn in raw["turns"])
    return Rollout(raw["id"], raw["question"], raw["reward"]["total"], ids, images, turns)


def _turn(raw: dict[str, Any], ids: tuple[int, ...], header: Header) -> RolloutTurn:
    selection = raw["selection"]
    turn = RolloutTurn(
        history=raw["history"],
        reasoning=raw["reasoning"],
        action=raw["action"],
        observation=raw["observation"],
        index=None if selection is None else selection["index"],
        scores=None if selection is None else tuple(selection["scores"]),
        log_q=None if selection is None else selection["logProbability"],
        written=None if raw["written"] is None else tuple(raw["written"]),
        action_log_probs=tuple(raw["actionLogprobs"]),
    )
    end = turn.history + turn.reasoning + turn.action + turn.observation
    if not 0 < turn.history < end <= len(ids):
        raise ValueError(f"expected spans inside {len(ids)} ids, got {turn.history}..{end}")
    if len(turn.action_log_probs) != turn.action:
        raise ValueError(f"expected {turn.action} action log-probs, got {len(turn.action_log_probs)}")
    if turn.index is not None:
        inserted = ids[turn.history : turn.history + turn.reasoning]
        if inserted != header.candidates[turn.index]:
            raise ValueError(f"expected the ids of {header.candidate_names[turn.index]} at {turn.history}, found others")
        if turn.scores is None or len(turn.scores) != len(header.candidates):
            raise ValueError(f"expected {len(header.candidates)} scores, got {len(turn.scores or ())}")
    elif turn.written is None or len(turn.written) != turn.reasoning:
        raise ValueError(f"expected a selection or {turn.reasoning} log-probs of written reasoning")
    return turn
