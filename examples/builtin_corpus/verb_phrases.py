"""Verb phrases: tense, auxiliaries, and the two positions of a German verb."""

from dataclasses import dataclass, field

from .verbs import Verb
from .words import Draws, English, German

# English singular and plural, German singular and plural. "wants" and
# "wanted" take "to", which German leaves out.
_AUXILIARIES = {
    "can": "can can kann können",
    "must": "must must muss müssen",
    "should": "should should soll sollen",
    "want": "wants want will wollen",
    "will": "will will wird werden",
    "could": "could could konnte konnten",
    "wanted": "wanted wanted wollte wollten",
    "have": "has have hat haben",
    "had": "had had hatte hatten",
}
_TO_BE = {"have": "ist sind", "had": "war waren"}
_PRESENT = {
    "simple": 0.45,
    "have": 0.2,
    "can": 0.08,
    "must": 0.08,
    "should": 0.05,
    "want": 0.06,
    "will": 0.08,
}
_PAST = {"simple": 0.6, "had": 0.2, "could": 0.1, "wanted": 0.1}
NEGATABLE = ("have", "had", "will", "should", "could")
INVERTIBLE_PRESENT = ("have", "can", "must", "should", "will")
INVERTIBLE_PAST = ("had", "could")


@dataclass(slots=True)
class VerbPhrase:
    """The words of a verb phrase, not yet in order.

    `english` is the finite part and `english_rest` the rest. `finite` and
    `bracket` are the German words of a main clause, `final` is the whole
    cluster at the end of a subordinate clause.
    """

    form: str
    english: list[English]
    english_rest: list[English] = field(default_factory=list)
    # `None` in an infinitive phrase, which has no finite verb.
    finite: German | None = None
    bracket: list[German] = field(default_factory=list)
    final: list[German] = field(default_factory=list)


def choose_form(draws: Draws, past: bool) -> str:
    """Return `simple` or the auxiliary of a clause."""
    return draws.weighted(_PAST if past else _PRESENT)


def conjugate(verb: Verb, past: bool, plural: bool) -> tuple[str, str]:
    """Return the finite forms, in German without the separable prefix."""
    if past:
        tail = "n" if verb.german_past.endswith("e") else "en"
        return verb.past, verb.german_past + (tail if plural else "")
    if plural:
        return verb.english, verb.german
    return verb.third, verb.german_third


def _simple(verb: Verb, past: bool, plural: bool) -> VerbPhrase:
    english, german = conjugate(verb, past, plural)
    words = [English(english)]
    if verb.particle:
        words.append(English(verb.particle))
    phrase = VerbPhrase("simple", words)
    phrase.finite = German(german, (words[0],))
    if verb.prefix:
        phrase.bracket = [German(verb.prefix, (words[-1],))]
    phrase.final = [German(verb.prefix + german, tuple(words))]
    return phrase


def verb_phrase(verb: Verb, form: str, past: bool, plural: bool) -> VerbPhrase:
    """Build the verb phrase of `verb` with the auxiliary `form`."""
    if form == "simple":
        return _simple(verb, past, plural)
    cells = _AUXILIARIES[form].split()
    auxiliary = English(cells[1 if plural else 0])
    german = cells[3 if plural else 2]
    perfect = form in ("have", "had")
    if perfect and verb.auxiliary == "be":
        german = _TO_BE[form].split()[1 if plural else 0]
    words = [English(verb.participle if perfect else verb.english)]
    if verb.particle:
        words.append(English(verb.particle))
    last = verb.german_participle if perfect else verb.german
    closing = German(verb.prefix + last, tuple(words))
    to = [English("to")] if form in ("want", "wanted") else []
    phrase = VerbPhrase(form, [auxiliary], to + words)
    phrase.finite = German(german, (auxiliary,))
    phrase.bracket = [closing]
    phrase.final = [closing, phrase.finite]
    return phrase


def infinitive_phrase(verb: Verb) -> VerbPhrase:
    """Build `to call` with `anzurufen`, or `to buy` with `zu kaufen`."""
    to, words = English("to"), [English(verb.english)]
    if verb.particle:
        words.append(English(verb.particle))
    if verb.prefix:
        text = f"{verb.prefix}zu{verb.german}"
        final = [German(text, tuple(words), ((to, 0),))]
    else:
        final = [German("zu", (to,)), German(verb.german, tuple(words))]
    return VerbPhrase("to", [to], words, final=final)


def predicative_phrase(past: bool, plural: bool) -> VerbPhrase:
    """Build a form of `be`, linked to its form of `sein`."""
    english = ("was", "were") if past else ("is", "are")
    german = _TO_BE["had" if past else "have"].split()
    word = English(english[plural])
    finite = German(german[plural], (word,))
    return VerbPhrase("be", [word], [], finite, [], [finite])
