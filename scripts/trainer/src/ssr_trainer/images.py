"""Image preprocessing of a Qwen3-VL folder, with Pillow: bicubic resize, rescale, normalise, cut into merged patches.

The same numbers as transformers' Pillow image processor for Qwen2-VL (asserted in the tests), without its overhead.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps


@dataclass(frozen=True)
class ImageSpec:
    patch_px: int
    temporal_patch: int
    merge: int
    min_pixels: int
    max_pixels: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    rescale: float

    @staticmethod
    def load(folder: Path) -> ImageSpec:
        raw = json.loads((folder / "preprocessor_config.json").read_text())
        return ImageSpec(
            patch_px=raw["patch_size"],
            temporal_patch=raw["temporal_patch_size"],
            merge=raw["merge_size"],
            min_pixels=raw["size"]["shortest_edge"],
            max_pixels=raw["size"]["longest_edge"],
            mean=tuple(raw["image_mean"]),
            std=tuple(raw["image_std"]),
            rescale=raw.get("rescale_factor", 1 / 255),
        )


@dataclass(frozen=True)
class Pixels:
    """`patches` float32 [grid_h * grid_w, 3 * temporal * patch * patch]; `grid` (t, h, w) in patches."""

    patches: np.ndarray
    grid: tuple[int, int, int]
    tokens: int


def resized_size(height: int, width: int, spec: ImageSpec) -> tuple[int, int]:
    """Sides as multiples of patch * merge with a pixel count between the two bounds, aspect kept as well as can be."""
    factor = spec.patch_px * spec.merge
    if max(height, width) / min(height, width) > 200:
        raise ValueError(f"expected an aspect ratio of at most 200, got {width}x{height}")
    rounded = round(height / factor) * factor, round(width / factor) * factor
    if rounded[0] * rounded[1] > spec.max_pixels:
        shrink = math.sqrt(height * width / spec.max_pixels)
        return tuple(max(factor, math.floor(side / shrink / factor) * factor) for side in (height, width))
    if rounded[0] * rounded[1] < spec.min_pixels:
        grow = math.sqrt(spec.min_pixels / (height * width))
        return tuple(math.ceil(side * grow / factor) * factor for side in (height, width))
    return rounded


def preprocess(picture: np.ndarray | Path, spec: ImageSpec) -> Pixels:
    """`picture`: uint8 RGB [height, width, 3], or a file, turned upright by its EXIF orientation."""
    image = Image.fromarray(picture) if isinstance(picture, np.ndarray) else _open(picture)
    height, width = resized_size(image.height, image.width, spec)
    resized = image.resize((width, height), Image.Resampling.BICUBIC)
    values = np.asarray(resized, np.float32).transpose(2, 0, 1) * np.float32(spec.rescale)
    mean, std = (np.asarray(v, np.float32)[:, None, None] for v in (spec.mean, spec.std))
    values = (values - mean) / std
    patch, merge = spec.patch_px, spec.merge
    rows, columns = height // patch, width // patch
    split = values.reshape(3, rows // merge, merge, patch, columns // merge, merge, patch)
    ordered = split.transpose(1, 4, 2, 5, 0, 3, 6)[:, :, :, :, :, None]
    repeated = np.broadcast_to(ordered, (*ordered.shape[:5], spec.temporal_patch, *ordered.shape[6:]))
    patches = repeated.reshape(rows * columns, 3 * spec.temporal_patch * patch * patch)
    return Pixels(patches, (1, rows, columns), rows * columns // merge**2)


def _open(path: Path) -> Image.Image:
    with Image.open(path) as image:
        return ImageOps.exif_transpose(image).convert("RGB")
