"""Invented people: their names, attributes and the one-line records a text search can find."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .lexicon import ATTRIBUTE_NAMES, ATTRIBUTES, name_pairs


@dataclass(frozen=True)
class Entity:
    """`name` is how questions and titles call it; an aliased entity's facts are filed under `alias` instead."""

    name: str
    facts: dict[str, str]
    alias: str | None = None
    alias_neighbour: str | None = None
    partner: str | None = None

    @property
    def filed_name(self) -> str:
        return self.alias or self.name

    def record(self, attribute: str) -> str:
        return f"{self.filed_name} {attribute}: {self.facts[attribute]}."

    @property
    def alias_records(self) -> list[str]:
        """What a search for the known name of an aliased entity returns: an unasked fact, then the alias."""
        neighbour = self.alias_neighbour
        if self.alias is None or neighbour is None:
            return []
        return [f"{self.name} {neighbour}: {self.facts[neighbour]}.", f"{self.name} alias: {self.alias}."]

    @property
    def partner_record(self) -> str:
        return f"{self.name} partner: {self.partner}."

    def records(self) -> list[str]:
        """Every record about the entity, as the corpus holds them."""
        extra = [self.partner_record] if self.partner else []
        return [*self.alias_records, *(self.record(attribute) for attribute in self.facts), *extra]


class NamePool:
    """Draws names of one group; with `unique`, no name comes twice (a corpus needs that, a training stream does not)."""

    def __init__(self, group: str, *, unique: bool) -> None:
        self._pairs = name_pairs(group)
        self._unique = unique
        self._taken: set[str] = set()

    def draw(self, rng: np.random.Generator, *, avoid: str = "") -> str:
        """A name that shares no word with `avoid`: a record of both must not count one of their words twice."""
        for _ in range(10_000):
            name = self._pairs[int(rng.integers(len(self._pairs)))]
            if name not in self._taken and not set(name.split()) & set(avoid.split()):
                break
        else:
            raise ValueError(f"expected a free name among {len(self._pairs)}, {len(self._taken)} are taken")
        if self._unique:
            self._taken.add(name)
        return name

    def peek(self, rng: np.random.Generator, *, avoid: str) -> str:
        """Any other name of the group, without taking it."""
        while (name := self._pairs[int(rng.integers(len(self._pairs)))]) == avoid:
            pass
        return name

    def draw_like(self, rng: np.random.Generator, name: str) -> str:
        """A name that shares its first or its second word with `name`."""
        first, second = name.split()
        similar = [
            pair
            for pair in self._pairs
            if pair not in self._taken and pair != name and (pair.split()[0] == first or pair.split()[1] == second)
        ]
        chosen = similar[int(rng.integers(len(similar)))]
        if self._unique:
            self._taken.add(chosen)
        return chosen


def draw_facts(rng: np.random.Generator) -> dict[str, str]:
    return {attribute: pool[int(rng.integers(len(pool)))] for attribute, pool in ATTRIBUTES.items()}


def draw_entity(rng: np.random.Generator, names: NamePool, asked: str, *, aliased: bool = False) -> Entity:
    """A fresh entity; an aliased one has, beside its alias, one fact other than `asked` under its known name."""
    name = names.draw(rng)
    if not aliased:
        return Entity(name, draw_facts(rng))
    others = [attribute for attribute in ATTRIBUTE_NAMES if attribute != asked]
    neighbour = others[int(rng.integers(len(others)))]
    return Entity(name, draw_facts(rng), alias=names.draw(rng, avoid=name), alias_neighbour=neighbour)
