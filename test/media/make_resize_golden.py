"""Writes resize.json beside this file: what Pillow's bicubic makes of a formula's pixels, as SHA-256 of the resized bytes.

Usage: python test/media/make_resize_golden.py   (Pillow 13, NumPy)
"""

import hashlib
import json
from pathlib import Path

import numpy
import PIL
from PIL import Image

SIZES = [
    ((384, 384), (128, 128)),
    ((96, 96), (128, 128)),
    ((231, 97), (192, 64)),
    ((384, 32), (448, 64)),
    ((100, 300), (64, 192)),
    ((300, 100), (192, 64)),
    ((256, 384), (192, 64)),
    ((256, 384), (96, 160)),
    ((33, 70), (64, 64)),
    ((200, 400), (100, 200)),
    ((200, 400), (100, 199)),
    ((50, 60), (50, 30)),
    ((50, 60), (25, 60)),
    ((7, 5), (96, 64)),
    ((640, 480), (640, 480)),
]


def pattern(width: int, height: int) -> numpy.ndarray:
    y, x, channel = numpy.mgrid[0:height, 0:width, 0:3]
    return ((x * 7 + y * 13 + channel * 29 + (x * y) % 31 * 5) % 256).astype(numpy.uint8)


def main() -> None:
    cases = []
    for source, target in SIZES:
        resized = Image.fromarray(pattern(*source)).resize(target, Image.Resampling.BICUBIC)
        digest = hashlib.sha256(numpy.asarray(resized).tobytes()).hexdigest()
        cases.append({"from": source, "to": target, "sha256": digest})
    document = {"pillow": PIL.__version__, "cases": cases}
    Path(__file__).with_name("resize.json").write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
