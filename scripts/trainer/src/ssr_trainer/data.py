"""Sources of training trajectories: a JSONL file for any Qwen3-VL folder, read in seeded epochs."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .trajectories import Trajectory, read_trajectories


class FileSource:
    """Every epoch is a fresh seeded permutation; the trajectories of a step depend on the seed and the step alone."""

    def __init__(self, path: Path, seed: int) -> None:
        self._trajectories = list(read_trajectories(path))
        if not self._trajectories:
            raise ValueError(f"expected trajectories in {path}, found none")
        self._seed = seed

    def __call__(self, step: int, count: int) -> list[Trajectory]:
        return [self._at(step * count + offset) for offset in range(count)]

    def _at(self, position: int) -> Trajectory:
        epoch, place = divmod(position, len(self._trajectories))
        order = np.random.default_rng([self._seed, 6, epoch]).permutation(len(self._trajectories))
        return self._trajectories[order[place]]
