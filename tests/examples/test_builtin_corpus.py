"""Grammar of the built-in corpus."""

import bz2
import itertools
from types import SimpleNamespace

import pytest

from examples.builtin_corpus import __main__ as program
from examples.builtin_corpus.pairs import generate_pairs
from luong_keras.data import phrasebook


@pytest.mark.slow
def test_program_writes_the_packaged_file():
    written = program.corpus()
    assert len(written) <= 1_000_000
    packaged = phrasebook.FILE.read_bytes()
    assert bz2.decompress(written) == bz2.decompress(packaged)
    assert written == packaged


def test_first_pairs_equal_the_packaged_ones():
    pairs = program.split_pairs("dev", 20)
    assert [(pair.source, pair.target) for pair in pairs] == [
        (pair.source, pair.target) for pair in phrasebook.split_pairs("dev", 20)
    ]


@pytest.mark.slow
def test_each_source_has_one_translation():
    translations: dict[str, str] = {}
    for pair in itertools.islice(generate_pairs(2, 3, 12), 4000):
        assert translations.setdefault(pair.source, pair.target) == pair.target


def test_dictionary_has_the_most_frequent_translations():
    def pair(source, target, *sure):
        return SimpleNamespace(
            source_tokens=source.split(),
            target_tokens=target.split(),
            sure=sure,
        )

    pairs = [
        pair("the red door", "die rote Tür", (0, 0), (1, 1), (2, 2)),
        pair("the red car", "das rote Auto", (0, 0), (1, 1), (2, 2)),
        pair("car the", "das Auto", (0, 1), (1, 0)),
        pair("a b", "z", (0, 0)),
        pair("a b", "y", (0, 0)),  # as frequent as z, but first in sorted order
    ]
    known = {"the": "das", "red": "rote", "door": "Tür", "car": "Auto"}
    assert program.dictionary(pairs) == {**known, "a": "y"}
