"""The checkpoint in transformers, by its own forward passes, image processor, rope positions and generation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from micro_world.render import crop
from PIL import Image
from tokenizers import Tokenizer
from transformers import Qwen3VLForConditionalGeneration
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

from .. import dialect
from .golden_histories import History

MAX_NEW_TOKENS = 64


class Reference:
    """The checkpoint in transformers: its model, its Pillow image processor, its tokenizer."""

    def __init__(self, folder: Path, data: Path) -> None:
        self._data = data
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.processor = Qwen2VLImageProcessorPil.from_pretrained(folder)
        self.model = Qwen3VLForConditionalGeneration.from_pretrained(folder, dtype=torch.float32).eval()
        self.pad_id = self.tokenizer.token_to_id(dialect.IMAGE_PAD)

    def ids(self, text: str) -> list[int]:
        return self.tokenizer.encode(text, add_special_tokens=False).ids

    def picture(self, image: dict[str, object]) -> np.ndarray:
        pixels = np.asarray(Image.open(self._data / str(image["path"])).convert("RGB"))
        return crop(pixels, tuple(image["bbox_2d"])) if image["bbox_2d"] else pixels

    def inputs(self, history: History) -> tuple[list[int], list[int], dict[str, torch.Tensor]]:
        """Sent ids, expanded ids, and the vision inputs."""
        sent = [token for part in history.parts for token in self.ids(part)]
        if not history.images:
            return sent, sent, {}
        pictures = [Image.fromarray(self.picture(image)) for image in history.images]
        vision = dict(self.processor(images=pictures, return_tensors="pt"))
        counts = iter((vision["image_grid_thw"].prod(-1) // self.processor.merge_size**2).tolist())
        expanded = [t for token in sent for t in ([token] * next(counts) if token == self.pad_id else [token])]
        return sent, expanded, vision

    def modality(self, ids: list[int]) -> torch.Tensor:
        return (torch.tensor([ids]) == self.pad_id).int()

    @torch.no_grad()
    def log_probs(self, ids: list[int], start: int, vision: dict[str, torch.Tensor]) -> list[float]:
        """log p of ids[start:], from one pass over the whole sequence."""
        extra = {"mm_token_type_ids": self.modality(ids), **vision} if vision else {}
        logits = self.model(input_ids=torch.tensor([ids]), use_cache=False, **extra).logits[0].float()
        wanted = torch.log_softmax(logits[start - 1 : -1], -1)
        return wanted.gather(1, torch.tensor(ids[start:])[:, None])[:, 0].tolist()

    @torch.no_grad()
    def greedy(
        self, ids: list[int], vision: dict[str, torch.Tensor], max_new_tokens: int = MAX_NEW_TOKENS
    ) -> tuple[list[int], float]:
        """The greedy continuation and the least gap between the two best logits on its way."""
        extra = {"mm_token_type_ids": self.modality(ids), **vision} if vision else {}
        stop = self.tokenizer.token_to_id(dialect.IM_END)
        self.model.model.rope_deltas = None
        output = self.model.generate(
            input_ids=torch.tensor([ids]),
            attention_mask=torch.ones(1, len(ids), dtype=torch.long),
            do_sample=False,
            max_new_tokens=max_new_tokens,
            eos_token_id=stop,
            pad_token_id=stop,
            output_logits=True,
            return_dict_in_generate=True,
            **extra,
        )
        best = [logits[0].topk(2).values for logits in output.logits]
        return output.sequences[0, len(ids) :].tolist(), min(float(pair[0] - pair[1]) for pair in best)

    def positions(self, ids: list[int], vision: dict[str, torch.Tensor]) -> list[list[int]]:
        grids = vision.get("image_grid_thw")
        found, _ = self.model.model.get_rope_index(torch.tensor([ids]), self.modality(ids), image_grid_thw=grids)
        return found[:, 0].tolist()
