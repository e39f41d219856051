"""Golden files of the micro checkpoint, computed by transformers alone: `python -m ssr_trainer.micro.golden`.

Written to test/golden/micro; asserted by vitest (the embedded engine) and pytest (this package). bf16 weights are read
into float32 and all arithmetic is float32. An image is {"path": under benchmarks/micro/data, "bbox_2d": null or a crop
on the 0..1000 scale, outward to whole pixels}. `sent_ids` hold one <|image_pad|> per image, `expanded_ids` one per image token.

- scores.json: {"cases": [{"name", "images", "sent_ids", "expanded_ids", "candidates": [{"id", "ids", "log_probs"}]}]};
  log_probs[j] is log p(ids[j] | expanded_ids, ids[:j]), one full forward pass per candidate.
- greedy.json: {"max_new_tokens", "stop_id", "cases": [{"name", "images", "sent_ids", "expanded_ids", "generated_ids",
  "smallest_margin"}]}; generated_ids end with the stop id if it came; smallest_margin is the least gap between the two best
  logits on the way (a tiny gap excuses a differing token).
- positions.json: {"cases": [{"name", "grids": [[t, h, w]...] in patches, "expanded_ids", "positions": [t[], h[], w[]]}]}.
- pixels.json: {"cases": [{"name", "image", "source_size": [w, h], "grid": [t, h, w], "resized_rgb_base64": uint8 rows of
  RGB after the bicubic resize, "stride", "samples": every stride-th value of the flattened pixel_values, "sum"}]}.
- tokenizer.json: {"cases": [{"text", "ids"}]}, no special tokens added.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from micro_world.export import draw_checked
from micro_world.questions import PLAIN_TYPES, Question
from micro_world.render import crop, png_bytes
from PIL import Image
from tokenizers import Tokenizer
from transformers import Qwen3VLForConditionalGeneration
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

from .. import dialect
from ..library import Library, load_library
from . import texts

OUTPUT = texts.REPOSITORY / "test/golden/micro"
DEV_SEED = 7003
GREEDY_CASES = 50
MAX_NEW_TOKENS = 64
NON_SQUARE_BOX = [100, 200, 700, 450]


@dataclass
class History:
    """A history h_t as parts of text, each encoded on its own; images as {"path", "bbox_2d"}."""

    name: str
    parts: list[str]
    images: list[dict[str, object]] = field(default_factory=list)


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
    def greedy(self, ids: list[int], vision: dict[str, torch.Tensor]) -> tuple[list[int], float]:
        extra = {"mm_token_type_ids": self.modality(ids), **vision} if vision else {}
        stop = self.tokenizer.token_to_id(dialect.IM_END)
        self.model.model.rope_deltas = None
        output = self.model.generate(
            input_ids=torch.tensor([ids]),
            attention_mask=torch.ones(1, len(ids), dtype=torch.long),
            do_sample=False,
            max_new_tokens=MAX_NEW_TOKENS,
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


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the golden files of the micro checkpoint.")
    parser.add_argument("--model", type=Path, default=texts.MODEL)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args()
    torch.set_num_threads(1)
    write_golden(options.model, options.output)


def write_golden(folder: Path, output: Path) -> None:
    reference = Reference(folder, texts.DATA)
    library = load_library(texts.LIBRARY, reference.tokenizer)
    questions = draw_checked("dev", DEV_SEED)[0]
    output.mkdir(parents=True, exist_ok=True)
    scored = _score_histories(questions, library)
    _write(output / "scores.json", {"cases": [_score_case(reference, history, library) for history in scored]})
    continued = _greedy_histories(questions, library)
    stop = reference.tokenizer.token_to_id(dialect.IM_END)
    cases = [_greedy_case(reference, history) for history in continued]
    _write(output / "greedy.json", {"max_new_tokens": MAX_NEW_TOKENS, "stop_id": stop, "cases": cases})
    _write(output / "positions.json", {"cases": [_position_case(reference, history) for history in scored]})
    _write(output / "pixels.json", {"cases": _pixel_cases(reference, questions)})
    strings = [*texts.tokenizer_texts(2)[:60], *(part for history in scored for part in history.parts), *HARD_STRINGS]
    strings = list(dict.fromkeys(text for text in strings if text))
    _write(output / "tokenizer.json", {"cases": [{"text": text, "ids": reference.ids(text)} for text in strings]})


HARD_STRINGS = [
    "Grüße aus naïve Cafés, 北京 🙂",
    "e\u0301 is normalised to \u00e9",
    "two  spaces,\ttab,\r\nnewlines\n\n\nand 12345 digits",
    "I'll say it's theirs, WE'RE done",
    "<thinking>unknown</thinking><answer>text</answer>",
    "half a tag <|im_start and <tool_call>a whole one</tool_call>",
]


def history_of(question: Question, turn: int, library: Library, *, with_image: bool = True) -> History:
    """h_t of a question's gold trajectory."""
    history = History(f"{question.type}, turn {turn}", [dialect.system_part(texts.SYSTEM_PROMPT.read_text())])
    if with_image:
        history.images.append(_source(question))
    history.parts.append(dialect.question_part(question.text, len(history.images)))
    for past in question.turns[:turn]:
        _append_turn(history, library, past.reasoning, past.action, past.observation_text or "")
        if past.observation_images:
            history.images.append({**_source(question), "bbox_2d": list(question.scene.tile_box)})
    return history


def _append_turn(history: History, library: Library, reasoning: str, action: str, observation: str) -> None:
    history.parts.append(_wrapped(library, reasoning))
    history.parts.append(dialect.action_part(action))
    history.parts.append(dialect.observation_part(observation))


def _wrapped(library: Library, candidate_id: str) -> str:
    return dialect.reasoning_part(library.candidates[library.index(candidate_id)].text)


def _source(question: Question) -> dict[str, object]:
    return {"path": f"dev/images/{hashlib.sha256(png_bytes(question.image)).hexdigest()}.png", "bbox_2d": None}


def _of_type(questions: list[Question], type_name: str) -> list[Question]:
    return [question for question in questions if question.type == type_name]


def _score_histories(questions: list[Question], library: Library) -> list[History]:
    """No image (two), one image (first and later turns; a non-square one), two images, three images (two kinds)."""
    named, pictured = _of_type(questions, "fact-of-named")[0], _of_type(questions, "fact-of-pictured")[0]
    fine, general = _of_type(questions, "tile-fine")[0], _of_type(questions, "general")[0]
    name = _of_type(questions, "name")[0]
    histories = [
        history_of(general, 0, library, with_image=False),
        history_of(named, 1, library, with_image=False),
        *(history_of(_of_type(questions, kind)[0], 0, library) for kind in PLAIN_TYPES),
        history_of(pictured, 1, library),
        history_of(pictured, 2, library),
        history_of(fine, 1, library),
    ]
    non_square = history_of(_of_type(questions, "colour")[1], 0, library)
    non_square.name, non_square.images[0]["bbox_2d"] = "non-square picture", NON_SQUARE_BOX
    cropped_twice = history_of(fine, 1, library)
    cropped_twice.name = "a crop, then a non-square crop"
    call = fine.turns[0].action.replace(str(list(fine.scene.tile_box)), str(NON_SQUARE_BOX))
    _append_turn(cropped_twice, library, fine.turns[0].reasoning, call, f"Image 2: {dialect.VISION}")
    cropped_twice.images.append({**_source(fine), "bbox_2d": NON_SQUARE_BOX})
    thumbnails = history_of(name, 0, library)
    thumbnails.name = "image search with two thumbnails"
    body = "\n".join(f"{line} {dialect.VISION}" for line in (name.turns[0].observation_text or "").split("\n"))
    _append_turn(thumbnails, library, name.turns[0].reasoning, name.turns[0].action, body)
    thumbnails.images += [_source(name), _source(pictured)]
    return [*histories, non_square, cropped_twice, thumbnails]


def _greedy_histories(questions: list[Question], library: Library) -> list[History]:
    """u_t = h_t and the gold candidate, at turns and types in rotation; every fourth without a picture where it fits."""
    histories: list[History] = []
    for number in range(GREEDY_CASES):
        kind = PLAIN_TYPES[number % len(PLAIN_TYPES)]
        question = _of_type(questions, kind)[2 + number // len(PLAIN_TYPES)]
        turn = number // len(PLAIN_TYPES) % len(question.turns)
        with_image = not (kind in ("fact-of-named", "general") and number % 2 == number // len(PLAIN_TYPES) % 2)
        history = history_of(question, turn, library, with_image=with_image)
        history.parts.append(_wrapped(library, question.turns[turn].reasoning))
        histories.append(history)
    return histories


def _score_case(reference: Reference, history: History, library: Library) -> dict[str, object]:
    sent, expanded, vision = reference.inputs(history)
    candidates = [
        {
            "id": candidate.id,
            "ids": list(candidate.ids),
            "log_probs": _rounded(reference.log_probs(expanded + list(candidate.ids), len(expanded), vision)),
        }
        for candidate in library.candidates
    ]
    return {**_head(history, sent, expanded), "candidates": candidates}


def _greedy_case(reference: Reference, history: History) -> dict[str, object]:
    sent, expanded, vision = reference.inputs(history)
    generated, margin = reference.greedy(expanded, vision)
    return {**_head(history, sent, expanded), "generated_ids": generated, "smallest_margin": round(margin, 6)}


def _position_case(reference: Reference, history: History) -> dict[str, object]:
    _, expanded, vision = reference.inputs(history)
    grids = vision["image_grid_thw"].tolist() if vision else []
    positions = reference.positions(expanded, vision)
    return {"name": history.name, "grids": grids, "expanded_ids": expanded, "positions": positions}


def _pixel_cases(reference: Reference, questions: list[Question]) -> list[dict[str, object]]:
    fine = _of_type(questions, "tile-fine")[0]
    boxes = {"whole picture": None, "upscaled crop": list(fine.scene.tile_box), "non-square crop": NON_SQUARE_BOX}
    boxes["thin crop"] = [0, 400, 1000, 480]
    cases = []
    for name, box in boxes.items():
        image = {**_source(fine), "bbox_2d": box}
        picture = Image.fromarray(reference.picture(image))
        found = reference.processor(images=[picture], return_tensors="np")
        grid = found["image_grid_thw"][0].tolist()
        values = found["pixel_values"].astype(np.float64).ravel()
        size = (grid[2] * reference.processor.patch_size, grid[1] * reference.processor.patch_size)
        resized = np.asarray(picture.resize(size, Image.Resampling.BICUBIC))
        cases.append(
            {
                "name": name,
                "image": image,
                "source_size": list(picture.size),
                "grid": grid,
                "resized_rgb_base64": base64.b64encode(resized.tobytes()).decode(),
                "stride": 97,
                "samples": _rounded(values[::97].tolist()),
                "sum": round(float(values.sum()), 3),
            }
        )
    return cases


def _head(history: History, sent: list[int], expanded: list[int]) -> dict[str, object]:
    return {"name": history.name, "images": history.images, "sent_ids": sent, "expanded_ids": expanded}


def _rounded(values: list[float]) -> list[float]:
    return [round(value, 6) for value in values]


def _write(path: Path, value: dict[str, object]) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
