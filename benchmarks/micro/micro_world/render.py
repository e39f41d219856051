"""Pictures of the world: a centre shape on a patterned background and one framed tile in a border cell of a 4x4 grid.

A plain tile is filled with its colour. A fine tile carries vertical stripes of period 3 px, one of colour c between two of
(3*128 - c)/2, so that reducing 384 px to 128 px averages the tile to grey: its colour can only be seen in a crop.
"""

from __future__ import annotations

import io
from dataclasses import dataclass

import numpy as np
from PIL import Image

from .lexicon import COLOUR_NAMES, COLOURS, SHAPES

SIDE_PX = 384
GRID = 4
CELL_PX = SIDE_PX // GRID
TILE_INSET_PX = 6
FRAME_PX = 6
SMALL_TILE_INSET_PX = 24
STRIPE_PX = 3
GREY = 128
BORDER_CELLS = [(row, column) for row in range(GRID) for column in range(GRID) if row in (0, 3) or column in (0, 3)]
BACKGROUNDS = [(206, 196, 172), (84, 96, 108), (176, 200, 186), (122, 104, 92), (216, 218, 226), (58, 66, 60)]
PATTERNS = 4


@dataclass(frozen=True)
class Scene:
    """Everything that determines a picture, pixel by pixel."""

    background: int
    pattern: int
    period_px: int
    phase_px: int
    shape: int
    colour: int
    centre_px: tuple[int, int]
    radius_px: int
    colour_shift: tuple[int, int, int]
    background_shift: tuple[int, int, int]
    tile_cell: int
    tile_colour: int
    tile_fine: bool
    tile_small: bool = False

    @property
    def shape_name(self) -> str:
        return SHAPES[self.shape]

    @property
    def colour_name(self) -> str:
        return COLOUR_NAMES[self.colour]

    @property
    def tile_colour_name(self) -> str:
        return COLOUR_NAMES[self.tile_colour]

    @property
    def tile_box(self) -> tuple[int, int, int, int]:
        """x1, y1, x2, y2 of the tile's cell on the 0..1000 scale of `bbox_2d`."""
        row, column = BORDER_CELLS[self.tile_cell]
        step = 1000 // GRID
        return column * step, row * step, (column + 1) * step, (row + 1) * step


def random_scene(rng: np.random.Generator, *, tile_fine: bool | None = None, tile_small: bool = False) -> Scene:
    shift = tuple(int(v) for v in rng.integers(-9, 10, 3))
    background_shift = tuple(int(v) for v in rng.integers(-8, 9, 3))
    return Scene(
        background=int(rng.integers(len(BACKGROUNDS))),
        pattern=int(rng.integers(PATTERNS)),
        period_px=int(rng.integers(5, 11)) * 6,
        phase_px=int(rng.integers(0, 10)) * 6,
        shape=int(rng.integers(len(SHAPES))),
        colour=int(rng.integers(len(COLOUR_NAMES))),
        centre_px=(int(rng.integers(186, 199)), int(rng.integers(186, 199))),
        radius_px=int(rng.integers(70, 87)),
        colour_shift=shift,
        background_shift=background_shift,
        tile_cell=int(rng.integers(len(BORDER_CELLS))),
        tile_colour=int(rng.integers(len(COLOUR_NAMES))),
        tile_fine=bool(rng.integers(2)) if tile_fine is None else tile_fine,
        tile_small=tile_small,
    )


def render(scene: Scene) -> np.ndarray:
    """The picture, uint8 [384, 384, 3]."""
    base = np.clip(np.add(BACKGROUNDS[scene.background], scene.background_shift), 0, 255)
    pixels = np.empty((SIDE_PX, SIDE_PX, 3), np.uint8)
    pixels[:] = base
    marked = _pattern_mask(scene)
    if marked is not None:
        pixels[marked] = np.clip(base.astype(int) + (26 if base.sum() < 390 else -26), 0, 255)
    _draw_shape(pixels, scene)
    _draw_tile(pixels, scene)
    return pixels


def crop(pixels: np.ndarray, box: tuple[float, float, float, float]) -> np.ndarray:
    """The part of full-resolution `pixels` inside a 0..1000 box, outward to whole pixels."""
    height, width = pixels.shape[:2]
    left, top = max(0, int(np.floor(box[0] / 1000 * width))), max(0, int(np.floor(box[1] / 1000 * height)))
    right, bottom = min(width, int(np.ceil(box[2] / 1000 * width))), min(height, int(np.ceil(box[3] / 1000 * height)))
    return pixels[top:bottom, left:right]


def png_bytes(pixels: np.ndarray) -> bytes:
    """A lossless PNG; pictures hold few colours, so a palette keeps the file at a few kilobytes."""
    flat = pixels.reshape(-1, 3)
    packed = flat[:, 0].astype(np.uint32) << 16 | flat[:, 1].astype(np.uint32) << 8 | flat[:, 2]
    colours, index = np.unique(packed, return_inverse=True)
    if len(colours) > 256:
        raise ValueError(f"expected at most 256 colours for a palette PNG, got {len(colours)}")
    image = Image.fromarray(index.reshape(pixels.shape[:2]).astype(np.uint8), mode="P")
    image.putpalette([channel for c in colours.tolist() for channel in (c >> 16, c >> 8 & 255, c & 255)])
    stream = io.BytesIO()
    image.save(stream, "PNG", optimize=True)
    return stream.getvalue()


def _pattern_mask(scene: Scene) -> np.ndarray | None:
    period, phase = scene.period_px, scene.phase_px
    if scene.pattern == 0:
        return None
    offset = (np.arange(SIDE_PX) + phase) % period
    if scene.pattern == 1:
        return np.repeat((offset < period / 2)[:, None], SIDE_PX, axis=1)
    if scene.pattern == 2:
        return (offset < period / 2)[:, None] ^ (offset < period / 2)[None, :]
    squared = (offset - period / 2) ** 2
    return squared[:, None] + squared[None, :] < (period / 4) ** 2


def _draw_shape(pixels: np.ndarray, scene: Scene) -> None:
    reach = scene.radius_px + 6
    row, column = scene.centre_px
    y = (np.arange(-reach, reach, dtype=np.float32) / scene.radius_px)[:, None]
    x = (np.arange(-reach, reach, dtype=np.float32) / scene.radius_px)[None, :]
    colour = np.clip(np.add(COLOURS[scene.colour_name], scene.colour_shift), 0, 255)
    window = pixels[row - reach : row + reach, column - reach : column + reach]
    window[_inside_shape(scene.shape_name, x, y)] = colour


def _inside_shape(name: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Whether (x, y), in units of the radius with y downward, lies in the shape."""
    match name:
        case "circle":
            return x * x + y * y < 1
        case "square":
            return np.maximum(abs(x), abs(y)) < 0.86
        case "triangle":
            return (y < 0.8) & (abs(x) < (y + 1) * 0.55)
        case "diamond":
            return abs(x) + abs(y) < 1.04
        case "cross":
            return ((abs(x) < 0.3) & (abs(y) < 1)) | ((abs(y) < 0.3) & (abs(x) < 1))
        case "ring":
            return (x * x + y * y < 1) & (x * x + y * y > 0.3)
        case "star":
            return x * x + y * y < (0.66 + 0.34 * np.cos(5 * np.arctan2(x, -y))) ** 2
        case "dome":
            return (x * x + (y - 0.45) ** 2 < 1.05) & (y < 0.45)
    raise ValueError(f"expected one of {SHAPES}, got {name!r}")


def _draw_tile(pixels: np.ndarray, scene: Scene) -> None:
    row, column = BORDER_CELLS[scene.tile_cell]
    inset = SMALL_TILE_INSET_PX if scene.tile_small else TILE_INSET_PX
    top, left, side = row * CELL_PX + inset, column * CELL_PX + inset, CELL_PX - 2 * inset
    pixels[top : top + side, left : left + side] = 24
    top, left, side = top + FRAME_PX, left + FRAME_PX, side - 2 * FRAME_PX
    colour = np.array(COLOURS[scene.tile_colour_name])
    pixels[top : top + side, left : left + side] = _stripes(colour, side) if scene.tile_fine else colour


def _stripes(colour: np.ndarray, width_px: int) -> np.ndarray:
    """One row [width, 3]; contrast rises over four periods from each edge, so that the reduction leaks no colour there."""
    period = np.arange(width_px // STRIPE_PX)
    contrast = np.minimum(np.minimum(period, period[::-1]) + 1, 4)[:, None] / 4
    middle = GREY + contrast * (colour - GREY)
    partner = (STRIPE_PX * GREY - middle) / 2
    blocks = np.stack([np.floor(partner), np.round(middle), np.ceil(partner)], axis=1)
    return blocks.reshape(-1, 3).astype(np.uint8)
