"""Golden greedy continuations of the freeform twin, by transformers alone: `python -m ssr_trainer.micro.twin_golden`.

Written to test/golden/micro-freeform/greedy.json, in the form of `golden.py`'s greedy.json: from the end of a history whose
earlier turns hold written traces, the twin writes a trace and its action up to the stop id. Beyond that form a case has
"thought_tokens": how many of the generated ids make up <thinking>...</thinking>. Equally good wordings may lie close together:
"smallest_margin" tells.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from micro_world.export import draw_checked
from micro_world.questions import PLAIN_TYPES, Question

from .. import dialect
from ..library import Candidate, Library
from . import texts
from .golden import DEV_SEED, case_head, write_compact
from .golden_histories import History, history_of, of_type
from .golden_reference import Reference
from .traces import traces

MODEL = texts.REPOSITORY / "benchmarks/micro/model-freeform"
OUTPUT = texts.REPOSITORY / "test/golden/micro-freeform"
MAX_NEW_TOKENS = 256
TRACE_SEED = 7


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the golden file of the freeform twin.")
    parser.add_argument("--model", type=Path, default=MODEL)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args()
    torch.set_num_threads(1)
    write_twin_golden(options.model, options.output)


def write_twin_golden(folder: Path, output: Path) -> None:
    reference = Reference(folder, texts.DATA)
    questions = draw_checked("dev", DEV_SEED)[0]
    cases = [_case(reference, history) for history in written_histories(questions)]
    output.mkdir(parents=True, exist_ok=True)
    stop = reference.tokenizer.token_to_id(dialect.IM_END)
    write_compact(output / "greedy.json", {"max_new_tokens": MAX_NEW_TOKENS, "stop_id": stop, "cases": cases})


def written_histories(questions: list[Question]) -> list[History]:
    """The first question of each type at its first turn, and at every later turn where there is one."""
    rng = np.random.default_rng(TRACE_SEED)
    firsts = [of_type(questions, name)[0] for name in PLAIN_TYPES]
    return [history for question in firsts for history in _histories(question, rng)]


def _histories(question: Question, rng: np.random.Generator) -> list[History]:
    """A question's traces serve as the library that its turns choose from."""
    written = [Candidate(f"turn {number}", text, ()) for number, text in enumerate(traces(question, rng))]
    turns = [replace(turn, reasoning=f"turn {number}") for number, turn in enumerate(question.turns)]
    told = replace(question, turns=turns)
    library = Library("traces", tuple(written))
    return [history_of(told, number, library) for number in range(len(turns))]


def _case(reference: Reference, history: History) -> dict[str, object]:
    sent, expanded, vision = reference.inputs(history)
    generated, margin = reference.greedy(expanded, vision, MAX_NEW_TOKENS)
    head = case_head(history, sent, expanded)
    thought = thought_length(reference, generated)
    return {**head, "generated_ids": generated, "thought_tokens": thought, "smallest_margin": round(margin, 6)}


def thought_length(reference: Reference, generated: list[int]) -> int:
    """Tokens up to and with the closing tag."""
    for length in range(1, len(generated) + 1):
        if reference.tokenizer.decode(generated[:length], skip_special_tokens=False).endswith("</thinking>"):
            return length
    raise ValueError(f"expected a closed thought, got {reference.tokenizer.decode(generated)!r}")


if __name__ == "__main__":
    main()
