"""Clauses: their parts, and the German orders of these parts.

A clause is built once, as parts, and then put in order: as a main clause
(verb second), after a fronted element (verb first) or as a subordinate
clause (verb last).
"""

from dataclasses import dataclass, field

from .noun_phrases import NounPhrase
from .verb_phrases import VerbPhrase
from .words import (
    English,
    German,
    unspoken_comma,
    word_pair,
)

Pair = tuple[list[English], list[German]]
_CONTRACTIONS = {
    ("in", "dem"): "im",
    ("an", "dem"): "am",
    ("zu", "dem"): "zum",
    ("zu", "der"): "zur",
}
_RELATIVES = {
    "nom": {"m": "der", "f": "die", "n": "das", "p": "die"},
    "acc": {"m": "den", "f": "die", "n": "das", "p": "die"},
}


@dataclass(slots=True)
class Clause:
    """The parts of a clause on both sides.

    `english_before` precedes the finite verb, `english_middle` follows it,
    and `english_tail` follows the whole verb. `middle` is the German middle
    field. `trail` follows the last verb in both languages, and `front` is
    an adverbial at the beginning.
    """

    subject: NounPhrase
    verb: VerbPhrase
    english_before: list[English] = field(default_factory=list)
    english_middle: list[English] = field(default_factory=list)
    english_tail: list[English] = field(default_factory=list)
    middle: list[German] = field(default_factory=list)
    trail: Pair = field(default_factory=lambda: ([], []))
    front: Pair = field(default_factory=lambda: ([], []))

    def english(self, question: bool = False) -> list[English]:
        """Return the English words in order."""
        first = [self.subject.english, self.english_before, self.verb.english]
        parts = [self.front[0], *(first[::-1] if question else first)]
        parts += [self.english_middle, self.verb.english_rest]
        parts += [self.english_tail, self.trail[0]]
        return [word for part in parts for word in part]

    def german(self, order: str) -> list[German]:
        """Return the German words with the verb `second`, `first` or `last`."""
        subject, verb = self.subject.german, self.verb
        finite = [] if verb.finite is None else [verb.finite]
        if order == "last":
            words = subject + self.middle + verb.final
        elif order == "first" or self.front[1]:
            words = [*self.front[1], *finite, *subject]
            words += self.middle + verb.bracket
        else:
            words = [*subject, *finite, *self.middle, *verb.bracket]
        return words + self.trail[1]


def contract(preposition: German, phrase: list[German]) -> list[German]:
    """Return preposition and phrase, with `in dem` contracted to `im`."""
    short = _CONTRACTIONS.get((preposition.text, phrase[0].text))
    if short is None:
        return [preposition, *phrase]
    links = tuple((word, 0) for word in phrase[0].sure)
    return [German(short, preposition.sure, links), *phrase[1:]]


def prepositional(english: str, german: str, phrase: NounPhrase) -> Pair:
    """Return both sides of a prepositional phrase."""
    source, target = word_pair(english, german)
    return source + phrase.english, contract(target[0], phrase.german)


def subordinate(english: str, german: str, clause: Clause) -> Pair:
    """Return a conjunction and its clause, verb last, without a comma."""
    source, target = word_pair(english, german)
    return source + clause.english(), target + clause.german("last")


def after_comma(pair: Pair) -> Pair:
    """Return `pair` with the comma that German puts before it."""
    first = pair[0][0]
    return pair[0], [unspoken_comma((first, 0), (first, -1)), *pair[1]]


def add_relative(phrase: NounPhrase, case: str, clause: Clause) -> None:
    """Append a relative clause between its two German commas.

    Args:
        phrase: The phrase that the clause describes; changed in place.
        case: `"nom"` if the noun is the subject of `clause` (which then has
            no other subject), `"acc"` if it is the object.
        clause: The relative clause without its pronoun.
    """
    noun = phrase.noun
    if noun is None:
        raise ValueError(
            "A relative clause needs a phrase with a noun. Received: "
            f"{' '.join(word.text for word in phrase.english)}. Check "
            "`phrase.closed` first."
        )
    english = "who" if case == "nom" else "that"
    column = "p" if phrase.plural else noun.gender
    pair = subordinate(english, _RELATIVES[case][column], clause)
    source, target = after_comma(pair)
    last = source[-1]
    closing = unspoken_comma((last, 0), (last, 1), (source[0], 0))
    phrase.english += source
    phrase.german += [*target, closing]
    phrase.closed = True
