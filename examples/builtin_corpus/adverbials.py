"""Adverbials: when, how often, how, with whom, for how much and where.

English writes most of them at the end of the clause, German in the middle
field: time first, then the objects, then the other adverbials.
"""

from .clauses import Clause, Pair, prepositional
from .noun_phrases import noun_phrase, place_phrase
from .nouns import PLACE_PREPOSITIONS
from .verbs import Verb
from .words import (
    Draws,
    English,
    German,
    word_pair,
)

_FREQUENCY = (("often", "oft"), ("always", "immer"), ("never", "nie"))
_MANNER = (
    ("quickly", "schnell"),
    ("quietly", "leise"),
    ("carefully", "vorsichtig"),
    ("secretly", "heimlich"),
)
_DAYS = (
    ("Monday", "Montag"),
    ("Tuesday", "Dienstag"),
    ("Thursday", "Donnerstag"),
    ("Friday", "Freitag"),
    ("Sunday", "Sonntag"),
)
_STATIVE = ("see", "find", "sleep", "arrive")
_MANNER_FRAMES = ("none", "direction", "accusative", "both")


def _day(draws: Draws) -> Pair:
    on, german_on = word_pair("on", "am")
    day, german_day = word_pair(*draws.pick(_DAYS))
    return on + day, german_on + german_day


def _year(draws: Draws) -> Pair:
    words = [English(text) for text in ("in", "the", "year")]
    digits = str(1700 + draws.below(320))
    number, german_number = word_pair(digits, digits)
    german = [
        German("im", (words[0],), ((words[1], 0),)),
        German("Jahr", (words[2],)),
    ]
    return words + number, german + german_number


def draw_time(draws: Draws, past: bool, form: str) -> Pair:
    """Return an adverbial of time that fits the tense."""
    if form == "have":
        return word_pair("today", "heute")
    kind = draws.weighted({"word": 0.55, "day": 0.35, "year": 0.1 * past})
    if kind == "day":
        return _day(draws)
    if kind == "year":
        return _year(draws)
    if past:
        return word_pair("yesterday", "gestern")
    pairs = [("today", "heute")]
    pairs.append(("tomorrow", "morgen") if form == "will" else ("now", "jetzt"))
    return word_pair(*draws.pick(pairs))


def add_time(
    draws: Draws, clause: Clause, past: bool, front: bool = False
) -> None:
    """Add an adverbial of time, perhaps at the front.

    Args:
        draws: Source of randomness.
        clause: The clause, with its middle field filled; changed in place.
        past: Whether the sentence is in the past tense.
        front: Whether the adverbial may come first in both languages.
    """
    pair = draw_time(draws, past, clause.verb.form)
    if front and draws.chance(0.5):
        clause.front = pair
    else:
        clause.english_tail += pair[0]
        clause.middle[:0] = pair[1]


def add_frequency(draws: Draws, clause: Clause) -> None:
    """Add `often`, `always` or `never`."""
    # German expresses "must never" with another verb.
    fits = _FREQUENCY[:2] if clause.verb.form == "must" else _FREQUENCY
    english, german = word_pair(*draws.pick(fits))
    if clause.verb.form in ("simple", "want", "wanted"):
        clause.english_before += english
    else:
        clause.english_middle += english
    clause.middle[:0] = german


def _price(draws: Draws) -> Pair:
    digits = str(2 + draws.below(998))
    cells = (("for", "für"), (digits, digits), ("euros", "Euro"))
    pairs = [word_pair(*cell) for cell in cells]
    return [p[0][0] for p in pairs], [p[1][0] for p in pairs]


def draw_adverbials(draws: Draws, verb: Verb) -> list[Pair]:
    """Return a random choice of manner, company, price and place."""
    pairs: list[Pair] = []
    lively = verb.english not in _STATIVE and verb.frame in _MANNER_FRAMES
    if lively and draws.chance(0.18):
        pairs.append(word_pair(*draws.pick(_MANNER)))
    if verb.english != "sleep" and draws.chance(0.1):
        company = noun_phrase(draws, "dat", "ha")
        pairs.append(prepositional("with", "mit", company))
    if verb.english in ("buy", "sell") and draws.chance(0.4):
        pairs.append(_price(draws))
    if verb.frame != "direction" and draws.chance(0.22):
        place = place_phrase(draws, "dat")
        noun = place.noun.english if place.noun else ""
        words = PLACE_PREPOSITIONS.get(noun, ("in", "in"))
        pairs.append(prepositional(*words, place))
    return pairs
