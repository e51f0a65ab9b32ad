import numpy as np
import pytest

from luong_keras.decoding.beam import Beam
from luong_keras.decoding.constrained_beam import (
    ConstrainedBeam,
    ForbiddenPhrases,
    PhraseProgress,
)
from luong_keras.decoding.sampling import Sampling
from luong_keras.decoding.scorers import LengthPenalty, Prefix
from luong_keras.decoding.search import search
from luong_keras.decoding.strategy import Greedy
from tests.decoding.every_translation import (
    MAX_LENGTH,
    SIZE,
    contains,
    every_translation,
)
from tests.decoding.test_scorers import Bigrams, check_all
from tests.decoding.toy_step import (
    ConstantStep,
    ToyStep,
    check_ranks,
    translations,
)
from tests.layer_checks import assert_all_close

tensorflow = pytest.mark.tensorflow
pytestmark = pytest.mark.slow_on_jax
SENTENCES = [3, 5, 7, 11]
# Per sentence: one that overlaps itself, two, a long one, none.
PHRASES = [[(4, 4, 5)], [(5, 4), (0,)], [(4, 5, 0)], []]


def padded(phrases, max_words=3, max_phrases=2):
    """Return the phrases of all sentences as padded arrays."""
    words = np.zeros((len(phrases), max_phrases, max_words), "int32")
    lengths = np.zeros((len(phrases), max_phrases), "int32")
    for row, sentence_phrases in enumerate(phrases):
        for place, phrase in enumerate(sentence_phrases):
            words[row, place, : len(phrase)] = phrase
            lengths[row, place] = len(phrase)
    return words, lengths


@pytest.mark.slow
@tensorflow
def test_progress_is_the_longest_matching_prefix():
    generator = np.random.default_rng(0)
    words = generator.integers(0, 2, (1, 3, 4))
    lengths = np.array([[4, 3, 1]])
    phrases = PhraseProgress(words, lengths)
    progress, text = np.zeros((1, 1, 3), "int32"), []
    for word in generator.integers(0, 2, 200):
        text.append(int(word))
        progress = phrases.advance(progress, np.array([[word]], "int32"))
        for place, length in enumerate(lengths[0]):
            phrase = words[0, place, :length].tolist()
            longest = max(
                size
                for size in range(length + 1)
                if text[len(text) - size :] == phrase[:size]
            )
            assert int(progress[0, 0, place]) == longest
            following = int(phrases.next_words(progress)[0, 0, place])
            assert following == [*phrase, -1][longest]
        # A complete phrase starts again.
        progress = np.where(np.array(progress) == lengths, 0, progress)
        if (np.array(progress) == 0).any():
            progress = np.zeros_like(progress)
            text = []


def test_forbidden_phrases_never_occur():
    def expected(row, words, score):
        is_forbidden = any(contains(words, phrase) for phrase in PHRASES[row])
        return None if is_forbidden else score

    step = ToyStep(SIZE, end_logit=1.0)
    scorer = ForbiddenPhrases(*padded(PHRASES))
    check_all(step, scorer, expected=expected, sentences=SENTENCES)


@pytest.mark.parametrize(
    "words, lengths", [([[1, 2]], [2]), ([[[1], [5]]], [1, 1]), ([[[1]]], 1)]
)
def test_shapes_of_phrases_are_checked(words, lengths):
    for kind in (
        ForbiddenPhrases,
        lambda *phrases: ConstrainedBeam(2, *phrases),
    ):
        with pytest.raises(ValueError, match=r"`lengths` \(B, P\).*Received"):
            kind(words, lengths)


@pytest.mark.slow_after_first
@tensorflow
@pytest.mark.parametrize("strategy", [Greedy(), Beam(2), Sampling(3)])
def test_one_list_of_phrases_serves_all_sentences(strategy):
    step = ToyStep(SIZE, end_logit=-2.0)
    words, lengths = padded([[(4, 5), (5,)]])
    scorers = [ForbiddenPhrases(words, lengths)]
    found = translations(step, range(20), 8, strategy=strategy, scorers=scorers)
    assert all(5 not in words for row in found for _, words, _ in row)
    assert any(4 in words for row in found for _, words, _ in row)


@pytest.mark.slow_after_first
@pytest.mark.parametrize("penalty, size", [(0.0, 250), (0.0, 50), (1.0, 50)])
def test_wide_beam_finds_all_translations_with_the_phrases(penalty, size):
    step = ToyStep(SIZE, end_logit=1.0)
    found = translations(
        step,
        SENTENCES[:3],
        MAX_LENGTH,
        # Fewer than 50 translations contain the phrases.
        strategy=ConstrainedBeam(size, *padded(PHRASES[:3]), stack_size=50),
        scorers=[LengthPenalty(penalty)],
    )
    for row, sentence in enumerate(SENTENCES[:3]):
        scores = {
            words: score / (len(words) + 1) ** penalty
            for words, score in every_translation(step, sentence).items()
            if all(contains(words, phrase) for phrase in PHRASES[row])
        }
        assert scores
        check_ranks(found[row], scores)


@pytest.mark.slow_after_first
@pytest.mark.parametrize(
    "size, end_logit", [(3, 1.0), (1, 2.0), (3, 4.0), (40, 1.0)]
)
@pytest.mark.parametrize("min_length", [0, 1])
def test_search_without_phrases_is_a_plain_beam_search(
    size, end_logit, min_length
):
    step = ToyStep(8, end_logit=end_logit, seed=3)
    states = step.states(*SENTENCES)
    limits = {"max_lengths": [7, 4, 1, 5], "min_lengths": min_length}
    no_phrases = padded([[]] * 4)
    constrained = ConstrainedBeam(size, *no_phrases, stack_size=5)
    for scorers in ([], [Bigrams(step.logits[:8])]):
        found, plain = (
            search(step, states, strategy, scorers=scorers, **limits)
            for strategy in (constrained, Beam(size, 5))
        )
        assert_all_close(found, plain, rtol=1e-5, atol=1e-6)


@pytest.mark.slow_after_first
@pytest.mark.parametrize(
    "beam, end_logit",
    [
        (2, 3.0),
        pytest.param(1, 1.0, marks=tensorflow),
        pytest.param(4, -3.0, marks=tensorflow),
        pytest.param(5, 8.0, marks=tensorflow),
    ],
)
def test_required_phrases_always_occur(beam, end_logit):
    generator = np.random.default_rng(beam)
    step = ToyStep(9, end_logit=end_logit, seed=beam)
    sentences = list(range(1, 25))
    phrases = [
        [
            tuple(generator.integers(4, 7, generator.integers(1, 4)).tolist())
            for _ in range(generator.integers(1, 4))
        ]
        for _ in sentences
    ]
    # Room for the phrases and up to three other words.
    max_lengths = [
        sum(map(len, sentence_phrases)) + 1 + int(generator.integers(0, 4))
        for sentence_phrases in phrases
    ]
    words, lengths = padded(phrases, max_phrases=3)
    strategy = ConstrainedBeam(beam, words, lengths)
    found = translations(step, sentences, max_lengths, strategy=strategy)
    for row, sentence_phrases in zip(found, phrases, strict=True):
        assert row
        for _, found_words, _ in row:
            assert all(contains(found_words, p) for p in sentence_phrases)


@tensorflow
def test_phrases_may_come_before_the_last_moment():
    # Two words are more probable than the required one. A beam of two without
    # a place reserved for it would delay it until the last step.
    step = ConstantStep([0, 0, 0, 0.4, 0.3, 0.05, 0.25])
    strategy = ConstrainedBeam(2, *padded([[(5,)]]))
    (found,) = translations(step, [1], 9, strategy=strategy)
    assert found[0][1] == (5,)


@pytest.mark.slow
@tensorflow
def test_beam_sizes_and_prefixes_per_sentence():
    step = ToyStep(9, end_logit=1.0, seed=6)
    phrases = [[(4, 5)], [(6,), (7, 4)], [(5,)]]
    words, lengths = padded(phrases)
    prefixes = np.array([[8, 4], [0, 0], [7, 0]])
    prefix_lengths = np.array([2, 0, 1])
    sizes = np.array([1, 4, 2])
    sentences = np.array([3, 5, 7])
    max_lengths = np.array([7, 6, 5])

    def searched(rows, width):
        return translations(
            step,
            sentences[rows],
            max_lengths[rows],
            strategy=ConstrainedBeam(
                width,
                words[rows],
                lengths[rows],
                sizes=sizes[rows],
                stack_sizes=sizes[rows],
            ),
            scorers=[Prefix(prefixes[rows], prefix_lengths[rows])],
        )

    batched = searched([0, 1, 2], 4)
    for row in range(3):
        (single,) = searched([row], int(sizes[row]))
        assert [w for _, w, _ in batched[row]] == [w for _, w, _ in single]
        start = tuple(prefixes[row, : prefix_lengths[row]])
        for _, found, _ in single:
            assert found[: len(start)] == start
            assert all(contains(found, phrase) for phrase in phrases[row])
