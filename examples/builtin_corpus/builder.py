"""Builder that fills clauses and nests them in each other."""

from .adverbials import (
    add_frequency,
    add_time,
    draw_adverbials,
)
from .clauses import (
    Clause,
    Pair,
    add_relative,
    after_comma,
    prepositional,
    subordinate,
)
from .noun_phrases import (
    NounPhrase,
    noun_phrase,
    place_phrase,
    subject_phrase,
)
from .nouns import HUMAN_ADJECTIVES
from .verb_phrases import (
    NEGATABLE,
    choose_form,
    infinitive_phrase,
    predicative_phrase,
    verb_phrase,
)
from .verbs import VERBS, Verb
from .words import Draws, English, word_pair

_FRAMES = {
    "none": 0.13,
    "direction": 0.1,
    "accusative": 0.38,
    "dative": 0.1,
    "both": 0.15,
    "preposition": 0.08,
    "be": 0.06,
}


class ClauseBuilder:
    """Builder of the clauses of one sentence, all in the same tense."""

    def __init__(self, draws: Draws, past: bool):
        """Store the source of randomness and the tense."""
        self.draws = draws
        self.past = past

    def clause(
        self, extra: int = 0, form: str | None = None, front: bool = False
    ) -> Clause:
        """Build a clause.

        Args:
            extra: The largest number of clauses to nest in it.
            form: Auxiliary of the verb, drawn at random if None.
            front: Whether an adverbial of time may come first.

        Returns:
            The clause.
        """
        subject = subject_phrase(self.draws)
        form = form or choose_form(self.draws, self.past)
        if extra and self._describable(subject) and self.draws.chance(0.5):
            self._describe(subject, extra - 1)
            extra = 0
        return self._predicate(subject, extra, form, front)

    def _describable(self, phrase: NounPhrase) -> bool:
        return phrase.noun is not None and not phrase.closed

    def _describe(self, phrase: NounPhrase, extra: int) -> None:
        """Add a relative clause: `who ...` for people, otherwise `that ...`."""
        form = choose_form(self.draws, self.past)
        noun_kinds = phrase.noun.kinds if phrase.noun else ""
        if "h" in noun_kinds:
            empty = NounPhrase([], [], phrase.plural)
            clause = self._predicate(empty, extra, form)
            add_relative(phrase, "nom", clause)
            return
        subject = subject_phrase(self.draws)
        if extra and self._describable(subject):
            self._describe(subject, extra - 1)
        kinds = set(noun_kinds)
        fits = [v for v in VERBS["accusative"] if kinds & set(v.kinds)]
        verb = self.draws.pick(fits)
        words = verb_phrase(verb, form, self.past, subject.plural)
        clause = Clause(subject, words)
        if self.draws.chance(0.2):
            add_frequency(self.draws, clause)
        add_relative(phrase, "acc", clause)

    def _predicate(
        self, subject: NounPhrase, extra: int, form: str, front: bool = False
    ) -> Clause:
        draws = self.draws
        if extra and draws.chance(0.6):
            return self._complemented(subject, extra - 1, form)
        frame = "accusative" if extra else draws.weighted(_FRAMES)
        if frame == "be":
            if form == "simple":
                return self._state(subject, front)
            frame = "both"
        verb = draws.pick(VERBS[frame])
        words = verb_phrase(verb, form, self.past, subject.plural)
        clause = Clause(subject, words)
        every = [word.text for word in subject.english[:1]] == ["every"]
        negated = form in NEGATABLE and not every and draws.chance(0.22)
        self._fill(clause, verb, extra, negated)
        if extra:
            return clause
        if draws.chance(0.28):
            add_time(draws, clause, self.past, front)
        elif not negated and draws.chance(0.18):
            add_frequency(draws, clause)
        return clause

    def _state(self, subject: NounPhrase, front: bool) -> Clause:
        """Build `the teacher is tired`."""
        clause = Clause(subject, predicative_phrase(self.past, subject.plural))
        adjective = self.draws.pick(HUMAN_ADJECTIVES)
        words = word_pair(adjective.english, adjective.german)
        clause.english_tail, clause.middle = words
        if self.draws.chance(0.3):
            add_frequency(self.draws, clause)
        elif self.draws.chance(0.3):
            add_time(self.draws, clause, self.past, front)
        return clause

    def _complemented(
        self, subject: NounPhrase, extra: int, form: str
    ) -> Clause:
        """Build `says that ...`, `asks whether ...` or `tries to ...`."""
        draws = self.draws
        frame = draws.weighted({"that": 0.55, "whether": 0.15, "to": 0.3})
        verb = draws.pick(VERBS[frame])
        words = verb_phrase(verb, form, self.past, subject.plural)
        if frame == "to":
            trail = self._infinitive(extra)
        else:
            german = "dass" if frame == "that" else "ob"
            trail = subordinate(frame, german, self.clause(extra))
        return Clause(subject, words, trail=after_comma(trail))

    def _infinitive(self, extra: int) -> Pair:
        frames = {"accusative": 0.65, "both": 0.2, "dative": 0.15}
        frame = self.draws.weighted(frames)
        verb = self.draws.pick(VERBS[frame])
        clause = Clause(NounPhrase([], []), infinitive_phrase(verb))
        self._fill(clause, verb, extra)
        if not extra and self.draws.chance(0.25):
            add_time(self.draws, clause, self.past)
        return clause.english(), clause.german("last")

    def _fill(
        self, clause: Clause, verb: Verb, extra: int, negated: bool = False
    ) -> None:
        """Add objects, `not` and all adverbials except adverbials of time."""
        english, clause.middle = self._objects(verb, extra, negated)
        end: Pair = ([], [])
        if verb.frame == "preposition":
            target = noun_phrase(self.draws, "acc", verb.kinds)
            end = prepositional(*verb.preposition, target)
        elif verb.frame == "direction":
            end = prepositional("to", "zu", place_phrase(self.draws, "dat"))
        clause.english_tail += english + end[0]
        if negated:
            source, target_words = word_pair("not", "nicht")
            clause.english_middle += source
            clause.middle += target_words
        elif not extra:
            for source, target_words in draw_adverbials(self.draws, verb):
                clause.english_tail += source
                clause.middle += target_words
        clause.middle += end[1]

    def _objects(self, verb: Verb, extra: int, negated: bool) -> Pair:
        draws = self.draws
        english, german = [], []
        if verb.frame in ("dative", "both"):
            kinds = verb.kinds if verb.frame == "dative" else "h"
            receiver = noun_phrase(draws, "dat", kinds, negated)
            english, german = receiver.english, receiver.german
        if verb.frame in ("accusative", "both"):
            thing = noun_phrase(draws, "acc", verb.kinds, negated)
            if extra and self._describable(thing):
                self._describe(thing, extra - 1)
            elif verb.frame == "both" and draws.chance(0.3):
                english = [*thing.english, English("to"), *english]
                return english, german + thing.german
            english = english + thing.english
            german = german + thing.german
        return english, german
