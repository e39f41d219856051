"""The reasoning library: an ordered list of candidates, insertion order = scoring order."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from tokenizers import Tokenizer

from .dialect import reasoning_part


@dataclass(frozen=True)
class Candidate:
    """`ids` are the tokens of the wrapped text encoded alone, once: they are the truth, the text is a view."""

    id: str
    text: str
    ids: tuple[int, ...]


@dataclass(frozen=True)
class Library:
    name: str
    candidates: tuple[Candidate, ...]

    def index(self, candidate_id: str) -> int:
        for position, candidate in enumerate(self.candidates):
            if candidate.id == candidate_id:
                return position
        known = ", ".join(candidate.id for candidate in self.candidates)
        raise ValueError(f"expected a candidate of library {self.name!r} ({known}), got {candidate_id!r}")


def load_library(path: Path, tokenizer: Tokenizer) -> Library:
    document = json.loads(path.read_text())
    entries = document.get("entries")
    if not entries:
        raise ValueError(f"expected a library with entries in {path}, found none")
    candidates = []
    for candidate_id, entry in entries.items():
        ids = tokenizer.encode(reasoning_part(entry["text"]), add_special_tokens=False).ids
        candidates.append(Candidate(candidate_id, entry["text"], tuple(ids)))
    return Library(document["name"], tuple(candidates))
