"""Sentences: questions, and main clauses with subordinate clauses."""

from .builder import ClauseBuilder
from .clauses import (
    Pair,
    after_comma,
    subordinate,
)
from .verb_phrases import (
    INVERTIBLE_PAST,
    INVERTIBLE_PRESENT,
)
from .words import Draws, word_pair

# English, German in the present tense, German in the past tense.
_CONJUNCTIONS = {
    "because": ("weil", "weil"),
    "although": ("obwohl", "obwohl"),
    "when": ("wenn", "als"),
    "while": ("während", "während"),
    "before": ("bevor", "bevor"),
    "after": ("nachdem", "nachdem"),
    "if": ("wenn", "wenn"),
}
_CONNECTORS = {
    ("and", "und"): 0.45,
    ("but", "aber"): 0.25,
    ("so", "deshalb"): 0.2,
    ("and then", "und dann"): 0.1,
}
_CLAUSE_COUNTS = {1: 0.33, 2: 0.28, 3: 0.17, 4: 0.11, 5: 0.07, 6: 0.04}


def _conjoined(builder: ClauseBuilder, extra: int) -> Pair:
    """Build a subordinate clause with its conjunction."""
    draws, past = builder.draws, builder.past
    english = draws.pick(tuple(_CONJUNCTIONS)[: 6 if past else 7])
    form = "simple" if draws.chance(0.6) else None
    if english == "after":
        form = "had" if past else "have"
    clause = builder.clause(extra, form)
    return subordinate(english, _CONJUNCTIONS[english][past], clause)


def _unit(builder: ClauseBuilder, count: int, order: str) -> Pair:
    """Build a main clause with `count - 1` clauses around or inside it."""
    draws = builder.draws
    form = draws.weighted({"inside": 0.4, "before": 0.35, "after": 0.25})
    if count == 1 or form == "inside" or (form, order) == ("before", "first"):
        clause = builder.clause(count - 1, front=order == "second")
        return clause.english(), clause.german(order)
    inner = draws.below(count - 1)
    if form == "after":
        clause = builder.clause(inner, front=order == "second")
        source, target = after_comma(_conjoined(builder, count - 2 - inner))
        return clause.english() + source, clause.german(order) + target
    source, target = _conjoined(builder, inner)
    comma, german_comma = word_pair(",", ",")
    clause = builder.clause(count - 2 - inner)
    target += german_comma + clause.german("first")
    return source + comma + clause.english(), target


def _question(builder: ClauseBuilder) -> Pair:
    draws = builder.draws
    forms = INVERTIBLE_PAST if builder.past else INVERTIBLE_PRESENT
    clause = builder.clause(form=draws.pick(forms))
    pairs = [(clause.english(question=True), clause.german("first"))]
    if draws.chance(0.5):
        word = draws.pick((("why", "warum"), ("when", "wann")))
        pairs.insert(0, word_pair(*word))
    pairs.append(word_pair("?", "?"))
    return _joined(pairs)


def _joined(pairs: list[Pair]) -> Pair:
    return (
        [word for pair in pairs for word in pair[0]],
        [word for pair in pairs for word in pair[1]],
    )


def draw_sentence(draws: Draws) -> Pair:
    """Build a sentence of one to six clauses, with its final mark.

    Args:
        draws: Source of randomness.

    Returns:
        The English and the German words, linked to each other. Two German
        commas without an English counterpart may be adjacent.
    """
    builder = ClauseBuilder(draws, past=draws.chance(0.4))
    rest = draws.weighted(_CLAUSE_COUNTS)
    if rest == 1 and draws.chance(0.25):
        return _question(builder)
    pairs: list[Pair] = []
    while rest:
        count = min(rest, 1 + draws.below(3))
        rest -= count
        order = "second"
        if pairs:
            pairs.append(word_pair(",", ","))
            connector = draws.weighted(_CONNECTORS)
            words = zip(*(side.split() for side in connector), strict=True)
            pairs += [word_pair(*pair) for pair in words]
            if connector[0] in ("so", "and then"):
                order = "first"
        pairs.append(_unit(builder, count, order))
    pairs.append(word_pair(".", "."))
    return _joined(pairs)
