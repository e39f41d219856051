"""Every word of the world. Each name, value, colour and shape is one token of the micro tokenizer, leading space included."""

from __future__ import annotations

FIRST_STARTS, FIRST_ENDS = ("Ka", "Mi", "To", "Re", "Lu", "Sa", "Vo", "Ne"), ("lo", "ra", "ni", "vu", "do", "ba", "se", "ky")
SECOND_STARTS, SECOND_ENDS = ("Ve", "Da", "Ho", "Bri", "Fe", "Gu", "Pa", "Jo"), ("nn", "st", "rk", "lt", "sk", "nd", "mp", "rt")
FIRST_NAMES = [start + end for start in FIRST_STARTS for end in FIRST_ENDS]
SECOND_NAMES = [start + end for start in SECOND_STARTS for end in SECOND_ENDS]

SHAPES = ["circle", "square", "triangle", "diamond", "cross", "ring", "star", "dome"]
COLOURS: dict[str, tuple[int, int, int]] = {
    "red": (222, 36, 36),
    "green": (36, 168, 60),
    "blue": (40, 64, 222),
    "yellow": (238, 220, 40),
    "purple": (138, 40, 180),
    "orange": (244, 140, 24),
    "cyan": (36, 204, 216),
    "pink": (248, 132, 190),
}
COLOUR_NAMES = list(COLOURS)

ATTRIBUTES: dict[str, list[str]] = {
    "city": (
        "Porto Kyoto Lyon Turin Bergen Krakow Seville Geneva Malmo Ghent Quito Cusco Perth Osaka Boston Denver "
        "Dakar Lagos Tunis Delhi Mumbai Hanoi Davao Izmir Basel Graz Split Riga Tartu Varna Cork Leeds"
    ).split(),
    "founder": (
        "Adams Baker Carter Dixon Ellis Foster Grant Hayes Irwin Jensen Keller Larson Mason Nolan Owens Parker "
        "Quinn Reyes Sutton Turner Upton Vargas Walker Young Zeller Archer Becker Conrad Duncan Emery Fuller Gibson"
    ).split(),
    "mascot": (
        "otter badger falcon tiger beaver rabbit turtle panda koala lizard donkey monkey gecko heron raven eagle "
        "whale shark camel horse sheep goose moose bison hyena lemur llama sloth zebra walrus weasel ferret"
    ).split(),
    "flower": (
        "rose tulip daisy lily orchid violet poppy lotus iris jasmine peony dahlia aster crocus clover begonia "
        "petunia primrose lilac magnolia marigold azalea camellia zinnia lavender hibiscus foxglove geranium gardenia "
        "freesia cosmos heather"
    ).split(),
}
ATTRIBUTE_NAMES = list(ATTRIBUTES)

# Real facts, memorised in training: the need "I already know this".
CAPITALS: dict[str, str] = {
    "France": "Paris", "Italy": "Rome", "Spain": "Madrid", "Japan": "Tokyo", "Egypt": "Cairo", "Peru": "Lima",
    "Kenya": "Nairobi", "Norway": "Oslo", "Greece": "Athens", "Cuba": "Havana", "Austria": "Vienna", "Poland": "Warsaw",
    "Portugal": "Lisbon", "Russia": "Moscow", "China": "Beijing", "Ireland": "Dublin", "Germany": "Berlin",
    "Sweden": "Stockholm", "Hungary": "Budapest", "Canada": "Ottawa", "Chile": "Santiago", "Turkey": "Ankara",
    "Denmark": "Copenhagen", "Bulgaria": "Sofia",
}  # fmt: skip

# Pairs (i + j) mod 5: 0 is for the final test, 1 for development, the rest for training.
NAME_GROUPS: dict[str, tuple[int, ...]] = {"test": (0,), "dev": (1,), "train": (2, 3, 4)}


def name_pairs(group: str) -> list[str]:
    """All two-word names of a group ("train", "dev" or "test"); the groups are disjoint."""
    wanted = NAME_GROUPS[group]
    return [
        f"{first} {second}"
        for i, first in enumerate(FIRST_NAMES)
        for j, second in enumerate(SECOND_NAMES)
        if (i + j) % 5 in wanted
    ]


def all_words() -> list[str]:
    """Every word that must be one token with its leading space."""
    values = [value for pool in ATTRIBUTES.values() for value in pool]
    return [*FIRST_NAMES, *SECOND_NAMES, *SHAPES, *COLOUR_NAMES, *ATTRIBUTE_NAMES, *values, *CAPITALS, *CAPITALS.values()]
