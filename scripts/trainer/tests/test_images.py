"""Preprocessing equals transformers' Pillow processor, value by value."""

import numpy as np
from PIL import Image
from ssr_trainer.images import preprocess
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil


def test_patches_equal_transformers(untrained) -> None:
    processor = Qwen2VLImageProcessorPil.from_pretrained(untrained.folder)
    rng = np.random.default_rng(1)
    for height, width in ((384, 384), (96, 96), (97, 231), (40, 300), (128, 128), (64, 65)):
        picture = rng.integers(0, 256, (height, width, 3), dtype=np.uint8)
        found = preprocess(picture, untrained.encoder.spec)
        wanted = processor(images=[Image.fromarray(picture)], return_tensors="np")
        assert list(found.grid) == wanted["image_grid_thw"][0].tolist()
        np.testing.assert_allclose(found.patches, wanted["pixel_values"], atol=1e-6)
