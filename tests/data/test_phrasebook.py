import itertools
from collections import Counter

import pytest
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

from luong_keras.data import phrasebook
from luong_keras.data.phrasebook import split_pairs, word_for_word_bleu


@pytest.fixture(scope="module")
def linked_pairs():
    """Tokenise the test pairs, with their sure and possible links."""
    tokenize = Tokenizer13a()
    found = []
    for source, target, links in split_pairs("test"):
        sides = tokenize(source).split(), tokenize(target).split()
        kinds = {"-": set(), "p": set()}
        for link in links.split():
            mark = "p" if "p" in link else "-"
            kinds[mark].add(tuple(map(int, link.split(mark))))
        found.append((*sides, kinds["-"], kinds["p"]))
    return found


def test_links_are_in_range_and_cover_the_target(linked_pairs):
    degrees = Counter()
    for source, target, sure, possible in linked_pairs:
        assert not sure & possible
        sources, targets = zip(*sure | possible, strict=True)
        assert set(sources) <= set(range(len(source)))
        assert set(targets) == set(range(len(target)))
        counts = Counter(j for _, j in sure)
        assert all(counts[j] or word == "," for j, word in enumerate(target))
        degrees.update(counts[j] for j in range(len(target)))
    assert degrees[1] / degrees.total() > 0.93
    assert set(degrees) == {0, 1, 2}


def test_linked_numbers_and_punctuation_are_equal(linked_pairs):
    for source, target, sure, _ in linked_pairs:
        for i, j in sure:
            if source[i].isdigit() or target[j].isdigit() or target[j] in ".?":
                assert source[i] == target[j]


def test_splits_share_no_sentence():
    splits = [split_pairs(split) for split in ("train", "dev", "test")]
    assert list(map(len, splits)) == [phrasebook.TRAIN_SIZE, 300, 1000]
    for side in (0, 1):
        sentences = [{pair[side] for pair in split} for split in splits]
        assert list(map(len, sentences)) == list(map(len, splits))
        for one, other in itertools.combinations(sentences, 2):
            assert not one & other


def test_size_selects_the_first_pairs():
    pairs = split_pairs("train")
    assert split_pairs("train", 5) == pairs[:5]
    assert split_pairs("train", 0) == []
    assert pairs[0].links is None


def test_word_for_word_translation_is_a_weak_baseline():
    assert 10 < word_for_word_bleu() < 30
    assert word_for_word_bleu() < word_for_word_bleu(("de", "en")) < 50


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("valid",), "'valid'"),
        (("dev", -1), "Received: -1"),
        (("train", 24_001), "0 to 24,000. Received: 24,001"),
    ],
)
def test_invalid_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        split_pairs(*arguments)
