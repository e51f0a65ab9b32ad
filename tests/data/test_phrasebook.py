"""The built-in corpus: German grammar, alignments, splits."""

import itertools
import os
import subprocess
import sys
from collections import Counter

import pytest
import sacrebleu
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

from luong_keras.data import phrasebook
from luong_keras.data.phrasebook import (
    SentencePair,
    format_links,
    generate_pairs,
    split_pairs,
)
from luong_keras.data.phrasebook.clauses import (
    Clause,
    add_relative,
    prepositional,
    subordinate,
)
from luong_keras.data.phrasebook.noun_phrases import NounPhrase, describe
from luong_keras.data.phrasebook.nouns import (
    COMPOUNDS,
    HUMAN_ADJECTIVES,
    HUMANS,
    PLACES,
    THING_ADJECTIVES,
    THINGS,
)
from luong_keras.data.phrasebook.verb_phrases import (
    infinitive_phrase,
    verb_phrase,
)
from luong_keras.data.phrasebook.verbs import VERBS
from luong_keras.data.phrasebook.words import Draws, word_pair
from luong_keras.evaluation.word_for_word import (
    translate_word_for_word,
    word_for_word,
)

NOUNS = {n.english: n for n in (*HUMANS, *THINGS, *COMPOUNDS, *PLACES)}
ADJECTIVES = {a.english: a for a in (*HUMAN_ADJECTIVES, *THING_ADJECTIVES)}
VERB = {v.english: v for verbs in VERBS.values() for v in verbs}


@pytest.fixture(scope="module")
def pairs() -> list[SentencePair]:
    return list(itertools.islice(generate_pairs(seed=11), 3000))


class _Chosen(Draws):
    """Draws that always choose the given adjective, or none."""

    def __init__(self, adjective: str):
        super().__init__(0)
        self.adjective = adjective

    def chance(self, probability: float) -> bool:
        return bool(self.adjective)

    def pick(self, options):
        return ADJECTIVES[self.adjective]


def _phrase(determiner, adjective, noun, case="nom", plural=False):
    draws = _Chosen(adjective)
    return describe(draws, NOUNS[noun], case, determiner, plural)


def _text(words) -> str:
    return " ".join(word.text for word in words)


# Determiner, adjective, noun, case (+ for the plural): hand-written German.
ENDINGS = {
    "the/old/teacher/nom": "der alte Lehrer",
    "the/old/teacher/acc": "den alten Lehrer",
    "the/old/aunt/dat": "der alten Tante",
    "the//boy/acc": "den Jungen",
    "the//neighbour/dat": "dem Nachbarn",
    "the//child/dat+": "den Kindern",
    "the//car/dat+": "den Autos",
    "the/young/girl/gen": "des jungen Mädchens",
    "his/young/sister/gen": "seiner jungen Schwester",
    "a/old/door/nom": "eine alte Tür",
    "a/expensive/coat/nom": "ein teurer Mantel",
    "a/expensive/coat/acc": "einen teuren Mantel",
    "a/red/book/acc": "ein rotes Buch",
    "a//uncle/dat": "einem Onkel",
    "our/small/child/nom": "unser kleines Kind",
    "our/new/lamp/acc+": "unsere neuen Lampen",
    "this/big/clock/dat": "dieser großen Uhr",
    "this/green/window/nom+": "diese grünen Fenster",
    "every/heavy/key/acc": "jeden schweren Schlüssel",
    "her/red/car key/acc": "ihren roten Autoschlüssel",
}


@pytest.mark.parametrize(("key", "german"), ENDINGS.items())
def test_endings(key, german):
    determiner, adjective, noun, case = key.split("/")
    plural = case.endswith("+")
    phrase = _phrase(determiner, adjective, noun, case.rstrip("+"), plural)
    assert _text(phrase.german) == german


@pytest.mark.parametrize(
    ("phrase", "english"),
    [
        (("a", "old", "door"), "an old door"),
        (("a", "", "uncle"), "an uncle"),
        (("a", "red", "car key"), "a red car key"),
        (("this", "big", "wine bottle", "nom", True), "these big wine bottles"),
    ],
)
def test_english_phrases(phrase, english):
    assert _text(_phrase(*phrase).english) == english


def test_number_takes_strong_endings():
    draws = _Chosen("tired")
    draws.pick = lambda options: (
        ADJECTIVES["tired"] if options is HUMAN_ADJECTIVES else ("3", "3")
    )
    nominative = describe(draws, NOUNS["teacher"], "nom", "number")
    dative = describe(draws, NOUNS["teacher"], "dat", "number")
    assert _text(nominative.english) == "3 tired teachers"
    assert _text(nominative.german) == "3 müde Lehrer"
    assert _text(dative.german) == "3 müden Lehrern"


def _clause(subject, verb, form="simple", past=False, thing=None):
    words = verb_phrase(VERB[verb], form, past, subject.plural)
    clause = Clause(subject, words)
    if thing:
        clause.english_tail = thing.english
        clause.middle = thing.german
    return clause


@pytest.mark.parametrize(
    ("form", "past", "second", "last"),
    [
        ("simple", False, "ruft den Lehrer an", "den Lehrer anruft"),
        ("simple", True, "rief den Lehrer an", "den Lehrer anrief"),
        ("have", False, "hat den Lehrer angerufen", "den Lehrer angerufen hat"),
        ("want", False, "will den Lehrer anrufen", "den Lehrer anrufen will"),
    ],
)
def test_verb_positions(form, past, second, last):
    subject = _phrase("the", "", "child")
    thing = _phrase("the", "", "teacher", "acc")
    clause = _clause(subject, "call", form, past, thing)
    assert _text(clause.german("second")) == f"das Kind {second}"
    finite, rest = second.split(" ", 1)
    assert _text(clause.german("first")) == f"{finite} das Kind {rest}"
    because = subordinate("because", "weil", clause)
    assert _text(because[1]) == f"weil das Kind {last}"


def test_verb_is_second_after_a_fronted_adverbial():
    clause = _clause(_phrase("the", "", "child", plural=True), "arrive")
    clause.front = word_pair("today", "heute")
    assert _text(clause.english()) == "today the children arrive"
    assert _text(clause.german("second")) == "heute kommen die Kinder an"


def test_perfect_takes_sein_for_motion():
    clause = _clause(_phrase("the", "", "daughter"), "walk", "have")
    assert _text(clause.english()) == "the daughter has walked"
    assert _text(clause.german("second")) == "die Tochter ist gegangen"


def test_infinitives_with_zu():
    assert _text(infinitive_phrase(VERB["call"]).final) == "anzurufen"
    assert _text(infinitive_phrase(VERB["buy"]).final) == "zu kaufen"
    pick = infinitive_phrase(VERB["pick"])
    assert _text(pick.english + pick.english_rest) == "to pick up"
    assert _text(pick.final) == "abzuholen"


def test_past_plurals():
    forms = [
        _text([verb_phrase(VERB[verb], "simple", True, True).finite])
        for verb in ("buy", "find", "forget", "know", "arrive")
    ]
    assert forms == ["kauften", "fanden", "vergaßen", "wussten", "kamen"]


def test_prepositions_contract_with_the_alone():
    in_garden = prepositional("in", "in", _phrase("the", "", "garden", "dat"))
    assert _text(in_garden[1]) == "im Garten"
    to_church = prepositional("to", "zu", _phrase("the", "", "church", "dat"))
    assert _text(to_church[1]) == "zur Kirche"
    in_this = prepositional("in", "in", _phrase("this", "", "garden", "dat"))
    assert _text(in_this[1]) == "in diesem Garten"


def test_relative_pronouns_agree():
    for noun, pronoun in (("teacher", "der"), ("aunt", "die"), ("girl", "das")):
        phrase = _phrase("the", "", noun)
        add_relative(phrase, "nom", _clause(NounPhrase([], []), "sleep"))
        assert _text(phrase.english).endswith("who sleeps")
        assert _text(phrase.german).endswith(f", {pronoun} schläft ,")
    phrase = _phrase("the", "", "coat", "acc")
    clause = _clause(_phrase("the", "", "queen"), "buy", past=True)
    add_relative(phrase, "acc", clause)
    assert _text(phrase.english) == "the coat that the queen bought"
    assert _text(phrase.german) == "den Mantel , den die Königin kaufte ,"
    with pytest.raises(ValueError, match="needs a phrase with a noun"):
        add_relative(NounPhrase([], []), "nom", clause)


def test_last_clauses_end_with_their_finite_verb(pairs):
    final = set()
    for verb, form, past, plural in itertools.product(
        VERB.values(),
        ("simple", "have", "had", "can", "could", "must", "should", "will")
        + ("want", "wanted"),
        (False, True),
        (False, True),
    ):
        final.add(verb_phrase(verb, form, past, plural).final[-1].text)
    final |= {"ist", "sind", "war", "waren"}
    seen = 0
    for pair in pairs:
        last = pair.target_tokens[:-1]
        start = len(last) - 1 - ("," in last and last[::-1].index(","))
        clause = last[start + 1 :]
        if "," in last and clause[0] in ("weil", "obwohl", "dass", "ob"):
            assert clause[-1] in final, pair.target
            seen += 1
    assert seen > 200


def test_no_double_or_stray_commas(pairs):
    for pair in pairs:
        for sentence in (pair.source, pair.target):
            assert ",," not in sentence and ",." not in sentence
            assert ",?" not in sentence and "  " not in sentence


def test_tokens_are_those_of_13a(pairs):
    tokenize = Tokenizer13a()
    for pair in pairs:
        assert tuple(tokenize(pair.source).split()) == pair.source_tokens
        assert tuple(tokenize(pair.target).split()) == pair.target_tokens


def test_links_are_in_range_and_cover_the_target(pairs):
    for pair in pairs:
        links = pair.sure + pair.possible
        assert not set(pair.sure) & set(pair.possible)
        for i, j in links:
            assert 0 <= i < len(pair.source_tokens)
            assert 0 <= j < len(pair.target_tokens)
        assert {j for _, j in links} == set(range(len(pair.target_tokens)))
        sure = {j for _, j in pair.sure}
        for j, token in enumerate(pair.target_tokens):
            assert j in sure or token == ","


def test_links_join_translations(pairs):
    for pair in pairs:
        for i, j in pair.sure:
            source, target = pair.source_tokens[i], pair.target_tokens[j]
            if source.isdigit() or target.isdigit() or target in ".?":
                assert source == target


def test_most_target_words_have_one_sure_link(pairs):
    degrees = Counter()
    for pair in pairs:
        counts = Counter(j for _, j in pair.sure)
        for j in range(len(pair.target_tokens)):
            degrees[counts[j]] += 1
    assert degrees[1] / degrees.total() > 0.93
    assert degrees[2] / degrees.total() < 0.03
    assert set(degrees) == {0, 1, 2}


def test_lengths(pairs):
    lengths = [len(pair.source_tokens) for pair in pairs]
    assert 18 < sum(lengths) / len(lengths) < 22
    assert 0.18 < sum(n > 30 for n in lengths) / len(lengths) < 0.26
    short = itertools.islice(generate_pairs(5, 3, 12), 200)
    for pair in itertools.chain(pairs, short):
        sides = len(pair.source_tokens), len(pair.target_tokens)
        assert min(sides) >= 3 and max(sides) <= 60
    for pair in itertools.islice(generate_pairs(5, 6, 12), 200):
        sides = len(pair.source_tokens), len(pair.target_tokens)
        assert min(sides) >= 6 and max(sides) <= 12


def test_most_word_types_are_rare_and_copied(pairs):
    source = Counter(t for pair in pairs for t in pair.source_tokens)
    target = Counter(t for pair in pairs for t in pair.target_tokens)
    rare = {token for token, count in source.items() if count == 1}
    assert 0.03 < len(rare) / source.total() < 0.1
    copied = sum(target[token] > 0 for token in rare)
    assert copied / len(rare) > 0.99
    closed = [t for t, n in source.items() if n > 2 and not t.isdigit()]
    assert len(closed) < 400


def test_english_determines_german(pairs):
    translations: dict[str, str] = {}
    short = itertools.islice(generate_pairs(2, 3, 12), 4000)
    for pair in itertools.chain(pairs, short):
        assert translations.setdefault(pair.source, pair.target) == pair.target


def test_splits_share_no_sentence():
    # The same seed: without the hash all splits would be the same.
    names = ("train", "dev", "test")
    splits = {name: split_pairs(name, 200) for name in names}
    for side in (0, 1):
        sets = [{pair[side] for pair in split} for split in splits.values()]
        assert [len(sentences) for sentences in sets] == [200, 200, 200]
        for first, second in itertools.combinations(sets, 2):
            assert not first & second


def test_no_pair_comes_twice(pairs, monkeypatch):
    doubled = [pair for pair in pairs[:50] for _ in range(2)]
    monkeypatch.setattr(phrasebook, "generate_pairs", lambda _: iter(doubled))
    split = split_pairs("train", 20)
    assert len({pair.source for pair in split}) == 20


def test_same_seed_same_pairs_whatever_the_hash_seed():
    code = (
        "import zlib; from luong_keras.data.phrasebook import split_pairs;"
        "print(zlib.crc32(repr(split_pairs('dev', 20, 3)).encode()))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1
    assert split_pairs("dev", 5, 3) != split_pairs("dev", 5, 4)


def test_word_for_word_is_a_weak_baseline():
    dictionary = word_for_word(split_pairs("train", 2000))
    test = split_pairs("test", 150)
    hypotheses = [
        " ".join(translate_word_for_word(pair.source_tokens, dictionary))
        for pair in test
    ]
    references = [" ".join(pair.target_tokens) for pair in test]
    score = sacrebleu.corpus_bleu(hypotheses, [references]).score
    assert 10 < score < 30


def test_format_links():
    pair = SentencePair("", "", ("a", "b"), ("c", "d"), ((1, 0),), ((0, 1),))
    assert format_links(pair) == "1-0 0p1"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: next(generate_pairs(1, 2, 60)), "min_length=2"),
        (lambda: next(generate_pairs(1, 30, 20)), "max_length=20"),
        (lambda: split_pairs("valid", 1), "'valid'"),
        (lambda: split_pairs("dev", -1), "-1"),
    ],
)
def test_bad_arguments(call, message):
    with pytest.raises(ValueError, match=message):
        call()
