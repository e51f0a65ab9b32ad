"""Text-to-text examples: data, and each program from end to end."""

import importlib
import random
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from luong_keras import Translator

NAMES = ("pronunciation", "inflection", "dates", "copying_summariser")
SIZES = {
    "pronunciation": {"WORDS": 24, "WORDS_READ": 1},
    "inflection": {"LEMMAS": 14, "FORMS_READ": 1},
    "dates": {"DAYS": 20, "TEST_DAYS": 4, "DATES_READ": 20},
    "copying_summariser": {
        "REPORTS": 20,
        "TEST_REPORTS": 4,
        "REPORTS_READ": 20,
    },
}
FILES = {
    # Two versions of CMUdict, and a letter in Latin-1.
    "pronunciation": ";;; CMUdict\nHELLO{0}  HH AH0 L OW1\n"
    "HELLO{0}(1)  HH EH0\nHÉLLO{0} HH EH0 # with an accent\n",
    "inflection": "ev{}\tevlerde mi\tN;LOC;PL\n",
}


def program(name):
    return importlib.import_module(f"examples.{name}")


@pytest.fixture
def small_program(name, monkeypatch):
    """Import a program, with few pairs."""
    for constant, size in SIZES[name].items():
        monkeypatch.setattr(program(name), constant, size)
    return program(name)


class Answers:
    """A translator with all answers, or, without attention, none."""

    def __init__(self, pairs, knows):
        self._answers = dict(pairs) if knows else {}

    def translate(self, lines, replace_unknown=True):
        known = self._answers if replace_unknown else {}
        return [known.get(line, "a <unk>") for line in lines]

    def nbest(self, lines):
        tokens = [*"1997-05-03"]
        found = SimpleNamespace(tokens=tokens, source_tokens=[*lines[0]])
        found.alignments = np.eye(len(tokens), len(lines[0]))
        return [[found]]


@pytest.fixture
def fits(monkeypatch, tmp_path):
    """Replace training; return the training and test pairs of each system."""
    given, configs = [], []
    fit = Translator.fit.__func__

    def run(config, folder, callbacks, train_only):
        assert train_only
        configs.append(config)
        return True

    def recording_fit(cls, pairs, **settings):
        given.append((pairs, settings["test"]))
        return fit(cls, pairs, **settings)

    def from_run(cls, folder):
        knows = Path(folder).name != "none"
        assert (configs[-1].model.attention.kind != "none") == knows
        return Answers(given[-1][1], knows)

    monkeypatch.setattr("luong_keras.translator.run_recipe", run)
    monkeypatch.setattr(Translator, "fit", classmethod(recording_fit))
    monkeypatch.setattr(Translator, "from_run", classmethod(from_run))
    monkeypatch.chdir(tmp_path)
    return given


TABLES = {
    "pronunciation": ["local | 0.0% | 100.0%", "none | "],
    "inflection": ["global | 100.0%", "none | 0.0%"],
    "dates": ["none | 0.0%", "global | 100.0%"],
    "copying_summariser": [
        "global | True | 100.0% | 100.0",
        "global | False | 0.0% |",
        "none | False | 0.0% |",
    ],
}


@pytest.mark.slow_after_first
@pytest.mark.parametrize("name", NAMES)
def test_program_compares_two_systems(name, small_program, fits, capsys):
    small_program.main()
    printed = capsys.readouterr().out
    rows = re.findall(r"^\| (\w+ \|.*\d.*) \|$", printed, re.MULTILINE)
    for row, expected in zip(rows, TABLES[name], strict=True):
        assert row.startswith(expected)
    if name == "dates":
        assert "1 100%  [S]aturday, May 3, 1997" in printed
    assert len(fits) == 2 and fits[0] == fits[1]
    train, test = fits[0]
    assert len(train) >= 15 and len(test) >= 4
    if name == "inflection":  # no test lemma is in the training pairs
        train, test = (
            [(re.sub(" [A-Z].*", "", s), t) for s, t in part]
            for part in (train, test)
        )
    assert not {source for source, _ in train} & {source for source, _ in test}


@pytest.mark.parametrize("name", FILES)
def test_program_reads_a_file_of_the_user(name, small_program, tmp_path, fits):
    lines = map(FILES[name].format, "abcdefghijkl")
    text = "".join([*lines, "\n"])  # ends with an empty line
    (tmp_path / "mine.tsv").write_text(text, encoding="latin-1")
    small_program.main("mine.tsv")
    train, test = fits[0]
    expected = {("e v a N LOC PL", "e v l e r d e _ m i")}
    if name == "pronunciation":
        expected = {
            ("H E L L O a", "HH AH0 L OW1"),
            ("H \ufffd L L O a", "HH EH0"),
        }
    assert expected <= {*train, *test}
    assert len(train + test) == 12 * len(expected)


@pytest.mark.parametrize(
    ("word", "phonemes"),
    [
        *[("faccia", "faʧːa"), ("gnocchi", "ɲokːi"), ("famiglia", "famiʎa")],
        *[("lascia", "laʃa"), ("oggi", "oʤːi"), ("ciao", "ʧao")],
        *[("quadro", "kwadro"), ("chiesa", "kieza"), ("pizza", "piʦːa")],
    ],
)
def test_italian_words_are_pronounced(word, phonemes):
    for rule in program("pronunciation").RULES.items():
        word = re.sub(*rule, word)
    assert word == phonemes


@pytest.mark.parametrize(
    ("one", "other", "errors"),
    [("", "abc", 3), ("kitten", "sitting", 3), ("ab", "ba", 2), ("a", "a", 0)],
)
def test_phoneme_errors_are_counted(one, other, errors):
    assert program("pronunciation").distance((*one,), (*other,)) == errors


@pytest.mark.parametrize(
    ("lemma", "suffixes", "form"),
    [
        ("ev", "lAr(ImDA", "evlerimde"),
        ("araba", "(nIn", "arabanın"),
        ("göz", "(yI", "gözü"),
        ("okul", "DA", "okulda"),
        ("sokak", "DA", "sokakta"),
        ("kedi", "(Im(yI", "kedimi"),
        ("baş", "lAr(In(yA", "başlarına"),
    ],
)
def test_turkish_nouns_are_inflected(lemma, suffixes, form):
    assert program("inflection").inflected(lemma, suffixes) == form


def test_dates_are_written_in_every_form():
    module = program("dates")
    draw = random.Random(0)
    date = module.datetime.date(1997, 5, 3)
    assert {module.written(date, draw) for _ in range(200)} == {
        *("3rd of May 1997", "May 3rd, 1997", "05/03/97", "3.5.1997"),
        *("03-May-1997", "Saturday, May 3, 1997", "3 May '97", "19970503"),
        "on Saturday the 3rd of May, 1997",
    }
    days = [module.datetime.date(2001, 1, day) for day in (1, 2, 11, 12, 22)]
    forms = {module.written(day, draw) for day in days for _ in range(99)}
    found = {re.match(r"January (\d+\w\w), 2001", form) for form in forms}
    assert {m[1] for m in found if m} == {"1st", "2nd", "11th", "12th", "22nd"}


def test_names_and_numbers_of_the_test_reports_are_new(monkeypatch):
    module = program("copying_summariser")
    pairs = [*module.made_up(random.Random(1))]
    test, train = pairs[: module.TEST_REPORTS], pairs[module.TEST_REPORTS :]
    seen = {
        w for pair in train for text in pair for w in re.findall(r"\w+", text)
    }
    for source, headline in test:
        name, _, town, *_, price, _ = headline.split()
        assert not {name, town, price} & seen
        assert {name, town, price} <= {*re.findall(r"\w+", source)}


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_attention_is_better_than_none(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    program(name).main()
    rows = re.findall(r"^\| (\w+) \|(.*)\|$", capsys.readouterr().out, re.M)
    right = {True: [], False: []}
    for kind, cells in rows:
        if exact := re.findall(r"(\d+\.\d)%", cells):
            right[kind != "none"].append(float(exact[-1]))
    assert max(right[True]) > 90
    assert max(right[True]) > right[False][0] + 10
