"""Publishes a trained run: evaluates it with the real loop, writes benchmarks/micro/model, its card and the golden files.

python -m ssr_trainer.micro.publish --run RUN [--splits plain hard]; use `--splits dev` while developing, with `--dry-run`.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

import torch

from ..evaluate import harness_evaluation
from . import texts
from .card import write_card
from .golden import OUTPUT, write_golden

ONCE = """Data, recipe and weights were chosen on development questions alone; `plain` and `hard` were evaluated for this card once,
after the weights were final."""


def main() -> None:
    parser = argparse.ArgumentParser(description="Evaluate a micro run and publish its checkpoint.")
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--splits", nargs="+", default=["plain", "hard"])
    parser.add_argument("--dry-run", action="store_true", help="only evaluate and print")
    options = parser.parse_args()
    torch.set_num_threads(1)
    trained = options.run / "model"
    summaries = {split: evaluate(trained, split, options.run / "evaluation" / split) for split in options.splits}
    for split, summary in summaries.items():
        overall = summary["success"]["overall"]
        print(f"{split}: {overall['successes']} of {overall['n']} ({overall['rate']:.1%})")
    if options.dry_run:
        return
    shutil.copytree(trained, texts.MODEL, dirs_exist_ok=True)
    write_card(texts.MODEL, options.run, summaries, ONCE if options.splits == ["plain", "hard"] else "")
    write_golden(texts.MODEL, OUTPUT)
    print(f"published in {texts.MODEL}; golden files in {OUTPUT}")


def evaluate(model: Path, split: str, output: Path) -> dict:
    """A fresh evaluation: an older one in `output` is removed."""
    shutil.rmtree(output, ignore_errors=True)
    output.parent.mkdir(parents=True, exist_ok=True)
    return harness_evaluation(texts.REPOSITORY, model.resolve(), split, output.resolve(), ["--max-new-tokens", "64"])


if __name__ == "__main__":
    main()
