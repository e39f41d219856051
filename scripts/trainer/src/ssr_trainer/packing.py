"""One packed row per trajectory: the gold path s q z a o z a ..., then every losing candidate as a branch.

A branch at turn t sees the history h_t and itself, nothing else, and its M-RoPE positions restart at the end of h_t; so
one forward pass scores all candidates of all chosen turns, as the engine does (tested: equal to separate passes).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from .images import Pixels
from .library import Library
from .trajectories import EncodedTrajectory

MAIN_PATH = 0


@dataclass(frozen=True)
class Span:
    """Tokens [start, start + length) of a row, the first predicted from position `before`, the others from start..."""

    start: int
    length: int
    before: int

    @property
    def predictors(self) -> list[int]:
        return [self.before, *range(self.start, self.start + self.length - 1)]


@dataclass(frozen=True)
class PackedTurn:
    """`candidates` in library order, or only the gold one where this turn has no branches."""

    chosen: int
    candidates: list[Span | None]
    action: Span


@dataclass(frozen=True)
class PackedRow:
    """ids [L]; branch [L] (0 = gold path); limit [L]: how many gold-path tokens a token may see; positions [3, L]."""

    ids: np.ndarray
    branch: np.ndarray
    limit: np.ndarray
    positions: np.ndarray
    turns: list[PackedTurn]
    images: list[Pixels]
    type: str


def pack(trajectory: EncodedTrajectory, library: Library, branch_turns: set[int], image_pad: int, merge: int) -> PackedRow:
    """`branch_turns`: turns whose losing candidates are packed too."""
    ids = list(trajectory.prompt)
    ends, chosen_spans, action_spans = [], [], []
    for turn in trajectory.turns:
        ends.append(len(ids))
        gold = library.candidates[turn.chosen].ids
        chosen_spans.append(Span(len(ids), len(gold), len(ids) - 1))
        ids.extend(gold)
        action_spans.append(Span(len(ids), len(turn.action), len(ids) - 1))
        ids.extend(turn.action)
        ids.extend(turn.observation)
    positions, next_position = mrope_positions(np.array(ids), trajectory.images, image_pad, merge)
    branch, limit = [MAIN_PATH] * len(ids), list(range(1, len(ids) + 1))
    position_parts, turns, branches = [positions], [], 0
    for number, turn in enumerate(trajectory.turns):
        spans: list[Span | None] = [None] * len(library.candidates)
        spans[turn.chosen] = chosen_spans[number]
        for index, candidate in enumerate(library.candidates) if number in branch_turns else ():
            if index == turn.chosen:
                continue
            length, branches = len(candidate.ids), branches + 1
            spans[index] = Span(len(ids), length, ends[number] - 1)
            ids.extend(candidate.ids)
            branch.extend([branches] * length)
            limit.extend([ends[number]] * length)
            start = next_position[ends[number] - 1]
            position_parts.append(np.tile(np.arange(start, start + length), (3, 1)))
        turns.append(PackedTurn(turn.chosen, spans, action_spans[number]))
    return PackedRow(
        np.array(ids), np.array(branch), np.array(limit), np.concatenate(position_parts, axis=1), turns,
        trajectory.images, trajectory.type,
    )  # fmt: skip


def mrope_positions(ids: np.ndarray, images: list[Pixels], image_pad: int, merge: int) -> tuple[np.ndarray, np.ndarray]:
    """M-RoPE positions [3, L] (time, height, width) and [L]: the position that a token after each token would get.

    Text advances all three by one. An image's tokens share the time of its first, count rows and columns from there, and
    advance the next token by the longer side of its merged grid.
    """
    positions = np.empty((3, len(ids)), np.int64)
    following = np.empty(len(ids), np.int64)
    waiting = iter(images)
    at, index = 0, 0
    while index < len(ids):
        if ids[index] != image_pad:
            positions[:, index] = at
            at += 1
            following[index] = at
            index += 1
            continue
        _, rows, columns = next(waiting).grid
        rows, columns = rows // merge, columns // merge
        stop = index + rows * columns
        positions[0, index:stop] = at
        positions[1, index:stop] = at + np.repeat(np.arange(rows), columns)
        positions[2, index:stop] = at + np.tile(np.arange(columns), rows)
        at += max(rows, columns)
        following[index:stop] = at
        index = stop
    return positions, following


@dataclass(frozen=True)
class Batch:
    """Rows padded to one length L: ids [B, L], positions [3, B, L], mask bool [B, 1, L, L] (True = may see)."""

    ids: torch.Tensor
    positions: torch.Tensor
    mask: torch.Tensor
    pixel_values: torch.Tensor | None
    grids: torch.Tensor | None
    rows: list[PackedRow]


def collate(rows: list[PackedRow], pad_id: int) -> Batch:
    longest = max(len(row.ids) for row in rows)
    ids = np.full((len(rows), longest), pad_id)
    positions = np.zeros((3, len(rows), longest), np.int64)
    mask = np.zeros((len(rows), 1, longest, longest), bool)
    for number, row in enumerate(rows):
        length = len(row.ids)
        ids[number, :length] = row.ids
        positions[:, number, :length] = row.positions
        mask[number, 0, :length, :length] = tree_mask(row)
        padding = np.arange(length, longest)
        mask[number, 0, padding, padding] = True
    images = [image for row in rows for image in row.images]
    return Batch(
        torch.from_numpy(ids),
        torch.from_numpy(positions),
        torch.from_numpy(mask),
        torch.from_numpy(np.concatenate([image.patches for image in images])) if images else None,
        torch.tensor([image.grid for image in images]) if images else None,
        rows,
    )


def tree_mask(row: PackedRow) -> np.ndarray:
    """bool [L, L]: a token sees the gold path up to its limit and, in its own branch, what comes before it."""
    index = np.arange(len(row.ids))
    on_main = (row.branch == MAIN_PATH)[None, :] & (index[None, :] < row.limit[:, None])
    in_branch = (row.branch[:, None] == row.branch[None, :]) & (index[None, :] <= index[:, None])
    return on_main | in_branch
