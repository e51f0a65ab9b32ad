"""Noun phrases: determiner, adjective and noun endings.

The German endings depend on case, gender, number and determiner. Cases are
`nom`, `acc`, `dat`, `gen`; columns of endings are m, f, n, p (plural).
"""

from dataclasses import dataclass

from .nouns import (
    ANIMALS,
    COMPOUNDS,
    HUMAN_ADJECTIVES,
    HUMANS,
    PLACE_ADJECTIVES,
    PLACES,
    THING_ADJECTIVES,
    THINGS,
    Noun,
)
from .words import (
    NUMBERS,
    Draws,
    English,
    German,
    draw_name,
)


def _endings(table: str) -> dict[str, dict[str, str]]:
    rows = (row.split() for row in table.split("/"))
    return {
        row[0]: {
            gender: "" if ending == "-" else ending
            for gender, ending in zip("mfnp", row[1:], strict=True)
        }
        for row in rows
    }


_THE = _endings(
    "nom der die das die / acc den die das die"
    "/ dat dem der dem den / gen des der des der"
)
_STRONG = _endings(
    "nom er e es e / acc en e es e / dat em er em en / gen es er es er"
)
_MIXED = _endings(
    "nom - e - e / acc en e - e / dat em er em en / gen es er es er"
)
# Adjectives: after the, this, every; after a, his, her, our; after numbers.
_ADJECTIVE_WEAK = _endings(
    "nom e e e en / acc en e e en / dat en en en en / gen en en en en"
)
_ADJECTIVE_MIXED = _endings(
    "nom er e es en / acc en e es en / dat en en en en / gen en en en en"
)
_STEMS = {
    "a": "ein",
    "his": "sein",
    "her": "ihr",
    "our": "unser",
    "this": "dies",
    "every": "jed",
}
_DETERMINERS = {
    "the": 0.42,
    "a": 0.2,
    "his": 0.07,
    "her": 0.06,
    "our": 0.05,
    "this": 0.06,
    "every": 0.05,
    "number": 0.09,
}
_NEGATABLE = {"the": 0.7, "his": 0.12, "her": 0.1, "our": 0.08}
_PRONOUNS = {"he": "er", "she": "sie", "they": "sie", "we": "wir"}


@dataclass(slots=True)
class NounPhrase:
    """Both sides of a phrase, with facts that the rest of the clause needs.

    `noun` is None for names, pronouns and coordinations. If `closed`,
    no relative clause may follow: it could refer to another noun.
    """

    english: list[English]
    german: list[German]
    plural: bool = False
    noun: Noun | None = None
    closed: bool = True


def _determiner(kind: str, case: str, column: str) -> tuple[str, str]:
    if kind == "the":
        return "the", _THE[case][column]
    english = "these" if kind == "this" and column == "p" else kind
    table = _STRONG if kind in ("this", "every") else _MIXED
    return english, _STEMS[kind] + table[case][column]


def _adjective_ending(kind: str, case: str, column: str) -> str:
    if kind == "number":
        return _STRONG[case]["p"]
    weak = kind in ("the", "this", "every")
    return (_ADJECTIVE_WEAK if weak else _ADJECTIVE_MIXED)[case][column]


def _noun_form(noun: Noun, case: str, plural: bool) -> str:
    if plural:
        form = noun.german_plural
        return form + "n" if case == "dat" and form[-1] not in "ns" else form
    if case == "gen" and noun.genitive:
        return noun.genitive
    return noun.oblique if case != "nom" and noun.oblique else noun.german


def _number(draws: Draws) -> tuple[str, str]:
    if draws.chance(0.5):
        return draws.pick(NUMBERS)
    digits = str(2 + draws.below(98 if draws.chance(0.5) else 998))
    return digits, digits


def _adjectives(noun: Noun) -> tuple:
    if "h" in noun.kinds:
        return HUMAN_ADJECTIVES
    return THING_ADJECTIVES if noun.kinds else PLACE_ADJECTIVES


def describe(
    draws: Draws,
    noun: Noun,
    case: str,
    determiner: str,
    plural: bool = False,
    adjective_chance: float = 0.45,
) -> NounPhrase:
    """Build a determiner, perhaps an adjective, and a noun."""
    plural = plural or determiner == "number"
    column = "p" if plural else noun.gender
    pair = (
        _number(draws)
        if determiner == "number"
        else _determiner(determiner, case, column)
    )
    english = [English(pair[0])]
    german = [German(pair[1], (english[0],))]
    if draws.chance(adjective_chance):
        adjective = draws.pick(_adjectives(noun))
        english.append(English(adjective.english))
        ending = _adjective_ending(determiner, case, column)
        german.append(German(adjective.stem + ending, (english[-1],)))
    if determiner == "a" and english[1:] and english[1].text[0] in "aeio":
        english[0].text = "an"
    text = noun.english_plural if plural else noun.english
    words = [English(word) for word in text.split()]
    if determiner == "a" and not english[1:] and text[0] in "aeiou":
        english[0].text = "an"
    german.append(German(_noun_form(noun, case, plural), tuple(words)))
    return NounPhrase(english + words, german, plural, noun, closed=False)


def choose_noun(draws: Draws, kinds: str) -> Noun:
    """Return a noun of one of `kinds`; people are more likely."""
    pool: tuple[Noun, ...] = HUMANS
    if not ("h" in kinds and draws.chance(0.8)):
        tables = [THINGS, COMPOUNDS] if draws.chance(0.7) else [THINGS]
        nouns = [noun for table in tables for noun in table]
        if "h" in kinds:
            nouns = [*HUMANS, *nouns]
        if "a" in kinds:
            nouns = [*ANIMALS, *nouns]
        pool = tuple(n for n in nouns if set(n.kinds) & set(kinds))
    return draws.pick(pool)


def noun_phrase(
    draws: Draws, case: str, kinds: str, negatable: bool = False
) -> NounPhrase:
    """Build a phrase of one of `kinds`, perhaps with an owner.

    Args:
        draws: Source of randomness.
        case: German case, `"nom"`, `"acc"` or `"dat"`.
        kinds: Letters of the kinds of nouns that fit.
        negatable: Whether German has to negate the phrase with `nicht`.

    Returns:
        The phrase.
    """
    if "h" in kinds and draws.chance(0.3):
        name = English(draw_name(draws))
        return NounPhrase([name], [German(name.text, (name,))])
    noun = choose_noun(draws, kinds)
    determiner = draws.weighted(_NEGATABLE if negatable else _DETERMINERS)
    plural = determiner not in ("a", "every") and draws.chance(0.17)
    phrase = describe(draws, noun, case, determiner, plural)
    if determiner == "the" and draws.chance(0.14):
        owner = _owner(draws)
        phrase.english += owner.english
        phrase.german += owner.german
        phrase.closed = True
    return phrase


def _owner(draws: Draws) -> NounPhrase:
    of = English("of")
    if draws.chance(0.4):
        name = English(draw_name(draws))
        german = [German("von", (of,)), German(name.text, (name,))]
        return NounPhrase([of, name], german)
    determiner = draws.weighted(_NEGATABLE)
    owner = describe(draws, draws.pick(HUMANS), "gen", determiner)
    owner.german[0].possible = ((of, 0),)
    owner.english.insert(0, of)
    return owner


def subject_phrase(draws: Draws, kinds: str = "h") -> NounPhrase:
    """Build a subject: a phrase, a pronoun or two phrases joined."""
    form = draws.weighted({"phrase": 0.74, "pronoun": 0.16, "joined": 0.1})
    if form == "pronoun":
        english = draws.pick(tuple(_PRONOUNS))
        word = English(english)
        german = [German(_PRONOUNS[english], (word,))]
        return NounPhrase([word], german, english in ("they", "we"))
    first = noun_phrase(draws, "nom", kinds)
    if form == "phrase":
        return first
    second = noun_phrase(draws, "nom", kinds)
    link = English("and")
    return NounPhrase(
        [*first.english, link, *second.english],
        [*first.german, German("und", (link,)), *second.german],
        plural=True,
    )


def place_phrase(draws: Draws, case: str) -> NounPhrase:
    """Build a singular phrase for a place."""
    determiner = draws.weighted({"the": 0.75, "a": 0.15, "this": 0.1})
    return describe(draws, draws.pick(PLACES), case, determiner, False, 0.4)
