"""Words linked to their translations, and random draws to choose them.

`English` words are compared by identity. A `German` word lists the English
words that it translates (`sure`) or merely belongs to (`possible`, each with an
offset in tokens), so any word order yields gold alignments.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")

_ONSETS = (*"bdfghjklmnprstvz", "br", "dr", "gr", "kl", "kr", "pl", "st", "tr")
_VOWELS = "aeiou"
_CODAS = ("", "", "", "", *"nrslkx")
_NUMBERS = (
    "two/zwei three/drei four/vier five/fünf six/sechs seven/sieben"
    " eight/acht nine/neun ten/zehn eleven/elf twelve/zwölf"
)
NUMBERS: tuple[tuple[str, str], ...] = tuple(
    (english, german)
    for english, _, german in (cell.partition("/") for cell in _NUMBERS.split())
)


@dataclass(eq=False, slots=True)
class English:
    """One English token."""

    text: str


@dataclass(eq=False, slots=True)
class German:
    """One German token; `unspoken` marks a comma that English lacks."""

    text: str
    sure: tuple[English, ...] = ()
    possible: tuple[tuple[English, int], ...] = ()
    unspoken: bool = False


class Draws:
    """Random choices that use only `random.Random.random`.

    Python guarantees a stable sequence only for this method.
    """

    def __init__(self, seed: int):
        """Start the random sequence of `seed`."""
        self._random = random.Random(seed).random

    def below(self, limit: int) -> int:
        """Return an integer from 0 to `limit - 1`."""
        return int(self._random() * limit)

    def chance(self, probability: float) -> bool:
        """Return True with the given probability."""
        return self._random() < probability

    def pick(self, options: Sequence[T]) -> T:
        """Return one of `options`, each equally likely."""
        return options[int(self._random() * len(options))]

    def weighted(self, weights: dict[T, float]) -> T:
        """Return a key of `weights`, drawn in proportion to its value."""
        rest = self._random() * sum(weights.values())
        for option, weight in weights.items():
            rest -= weight
            if rest < 0:
                return option
        return option


def draw_name(draws: Draws) -> str:
    """Return a made-up name, such as `Milora`, that is rarely drawn again."""
    count = 2 if draws.chance(0.4) else 3
    parts = [draws.pick(_ONSETS) + draws.pick(_VOWELS) for _ in range(count)]
    return "".join(parts).capitalize() + draws.pick(_CODAS)


def word_pair(english: str, german: str) -> tuple[list[English], list[German]]:
    """Return two one-word lists, linked to each other."""
    source = English(english)
    return [source], [German(german, (source,))]


def unspoken_comma(*possible: tuple[English, int]) -> German:
    """Return a comma that only the German sentence has."""
    return German(",", (), possible, unspoken=True)
