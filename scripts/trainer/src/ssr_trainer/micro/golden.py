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
import json
from pathlib import Path

import numpy as np
import torch
from micro_world.export import draw_checked
from micro_world.questions import Question
from PIL import Image

from .. import dialect
from ..library import Library, load_library
from . import texts
from .golden_histories import NON_SQUARE_BOX, History, greedy_histories, of_type, score_histories, source_image
from .golden_reference import MAX_NEW_TOKENS, Reference

OUTPUT = texts.REPOSITORY / "test/golden/micro"
DEV_SEED = 7003
GREEDY_CASES = 50


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
    scored = score_histories(questions, library)
    write_compact(output / "scores.json", {"cases": [_score_case(reference, history, library) for history in scored]})
    continued = greedy_histories(questions, library, GREEDY_CASES)
    stop = reference.tokenizer.token_to_id(dialect.IM_END)
    cases = [_greedy_case(reference, history) for history in continued]
    write_compact(output / "greedy.json", {"max_new_tokens": MAX_NEW_TOKENS, "stop_id": stop, "cases": cases})
    write_compact(output / "positions.json", {"cases": [_position_case(reference, history) for history in scored]})
    write_compact(output / "pixels.json", {"cases": _pixel_cases(reference, questions)})
    strings = [*texts.tokenizer_texts(2)[:60], *(part for history in scored for part in history.parts), *HARD_STRINGS]
    strings = list(dict.fromkeys(text for text in strings if text))
    write_compact(output / "tokenizer.json", {"cases": [{"text": text, "ids": reference.ids(text)} for text in strings]})


HARD_STRINGS = [
    "Grüße aus naïve Cafés, 北京 🙂",
    "e\u0301 is normalised to \u00e9",
    "two  spaces,\ttab,\r\nnewlines\n\n\nand 12345 digits",
    "I'll say it's theirs, WE'RE done",
    "<thinking>unknown</thinking><answer>text</answer>",
    "half a tag <|im_start and <tool_call>a whole one</tool_call>",
]


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
    return {**case_head(history, sent, expanded), "candidates": candidates}


def _greedy_case(reference: Reference, history: History) -> dict[str, object]:
    sent, expanded, vision = reference.inputs(history)
    generated, margin = reference.greedy(expanded, vision)
    return {**case_head(history, sent, expanded), "generated_ids": generated, "smallest_margin": round(margin, 6)}


def _position_case(reference: Reference, history: History) -> dict[str, object]:
    _, expanded, vision = reference.inputs(history)
    grids = vision["image_grid_thw"].tolist() if vision else []
    positions = reference.positions(expanded, vision)
    return {"name": history.name, "grids": grids, "expanded_ids": expanded, "positions": positions}


def _pixel_cases(reference: Reference, questions: list[Question]) -> list[dict[str, object]]:
    fine = of_type(questions, "tile-fine")[0]
    boxes = {"whole picture": None, "upscaled crop": list(fine.scene.tile_box), "non-square crop": NON_SQUARE_BOX}
    boxes["thin crop"] = [0, 400, 1000, 480]
    cases = []
    for name, box in boxes.items():
        image = {**source_image(fine), "bbox_2d": box}
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


def case_head(history: History, sent: list[int], expanded: list[int]) -> dict[str, object]:
    return {"name": history.name, "images": history.images, "sent_ids": sent, "expanded_ids": expanded}


def _rounded(values: list[float]) -> list[float]:
    return [round(value, 6) for value in values]


def write_compact(path: Path, value: dict[str, object]) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
