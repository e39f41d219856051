"""The JSON configuration of a training run; unknown and missing keys are refused by name."""

from __future__ import annotations

import json
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from .loss import LossSettings
from .optimisation import OptimiserSettings
from .sft import BatchSettings

T = TypeVar("T")


@dataclass(frozen=True)
class SftConfig:
    """Paths are relative to the configuration file."""

    model: str  # a Hugging Face Qwen3-VL folder
    library: str
    system_prompt: str
    data: str  # trajectories, JSONL
    run: str  # state, curves and the trained checkpoint
    optimiser: OptimiserSettings
    held_out: str | None = None
    seed: int = 1
    device: str = "cpu"
    dtype: str = "float32"
    threads: int | None = None
    freeze_vision: bool = False
    gradient_checkpointing: bool = False
    batches: BatchSettings = field(default_factory=BatchSettings)
    loss: LossSettings = field(default_factory=LossSettings)


def load_config(path: Path) -> SftConfig:
    return read_settings(SftConfig, json.loads(path.read_text()), str(path))


def read_settings(kind: type[T], raw: Any, where: str) -> T:
    """A dataclass from parsed JSON, nested dataclasses too."""
    if not isinstance(raw, dict):
        raise ValueError(f"expected an object in {where}, got {type(raw).__name__}")
    known = {entry.name: entry for entry in fields(kind)}
    unknown = sorted(set(raw) - set(known))
    if unknown:
        raise ValueError(f"unknown key {unknown[0]!r} in {where}; known: {', '.join(sorted(known))}")
    required = [name for name, entry in known.items() if entry.default is MISSING and entry.default_factory is MISSING]
    missing = [name for name in required if name not in raw]
    if missing:
        raise ValueError(f"missing key {missing[0]!r} in {where}")
    hints = get_type_hints(kind)
    values = {
        name: read_settings(hints[name], value, f"{where}: {name}") if is_dataclass(hints[name]) else value
        for name, value in raw.items()
    }
    return kind(**values)
