import collections

import numpy as np
import pytest
from keras import ops

from luong_keras.decoding.sampling import Sampling
from luong_keras.decoding.scorers import Scorer
from luong_keras.decoding.search import search
from luong_keras.special_tokens import EOS_ID
from tests.decoding.every_translation import SIZE, drawn_from
from tests.decoding.toy_step import ToyStep, as_lists

pytestmark = pytest.mark.slow_on_jax
DRAWINGS = 4000


def drawings(step, strategy, maximum, sentence=5, **options):
    """{words: how often} of sentences that are all the same one."""
    found = as_lists(
        search(
            step,
            step.states(*[sentence] * DRAWINGS),
            strategy,
            [maximum] * DRAWINGS,
            maximum,
            **options,
        )
    )
    return found, collections.Counter(
        words for row in found for _, words, _ in row
    )


def check_frequencies(counts, expected):
    for words, probability in expected.items():
        mean = DRAWINGS * probability
        spread = (mean * (1 - probability)) ** 0.5
        # Two more for what is nearly never drawn.
        assert abs(counts[words] - mean) < 5 * spread + 2, words


def tempered(temperature=1.0, top_k=None, top_p=1.0):
    """The weights that words are drawn by, of NumPy."""

    def change(gains):
        weights = np.exp((gains - gains.max()) / temperature)
        weights /= weights.sum()
        order = np.argsort(-weights)
        if top_k:
            weights[order[top_k:]] = 0
            weights /= weights.sum()
        before = np.cumsum(weights[order]) - weights[order]
        weights[order[before >= top_p]] = 0
        return weights

    return change


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"temperature": 0.5},
        {"temperature": 2.0, "top_k": 2},
        {"top_p": 0.6},
        {"temperature": 1.5, "top_k": 3, "top_p": 0.8},
    ],
)
def test_words_are_drawn_as_probable_as_they_are(settings):
    step = ToyStep(SIZE, end_logit=1.0, seed=3)
    seeds = np.arange(DRAWINGS, dtype="int32")
    found, counts = drawings(step, Sampling(1, seeds=seeds, **settings), 3)
    expected = drawn_from(step, 5, 3, tempered(**settings))
    assert set(counts) <= set(expected)
    check_frequencies(counts, expected)
    # The score is the model's, whatever the drawing.
    for ((score, words, alignments),) in found[:50]:
        ends = (*words, EOS_ID)[:3]
        total = sum(
            step.log_probabilities(5, words[:t])[word]
            for t, word in enumerate(ends)
        )
        np.testing.assert_allclose(score, total, rtol=1e-5)
        np.testing.assert_allclose(
            alignments, step.alignment_rows(5, words), atol=1e-6
        )


def test_every_sentence_has_settings_of_its_own():
    step = ToyStep(40, seed=2)
    sentences, longest = [3, 5, 7, 5], [6, 4, 0, 6]
    settings = {
        "temperature": np.array([0.5, 1.0, 2.0, 3.0], "float32"),
        "top_k": np.array([0, 3, 1, 0], "int32"),
        "top_p": np.array([1.0, 1.0, 0.5, 0.7], "float32"),
        "seeds": np.array([4, 1, 9, 4], "int32"),
    }
    together = as_lists(
        search(
            step, step.states(*sentences), Sampling(3, **settings), longest, 6
        )
    )
    assert len(together[0]) == 3
    for row, sentence in enumerate(sentences):
        own = {name: value[row].item() for name, value in settings.items()}
        own["seeds"] = [own["seeds"]]
        (alone,) = as_lists(
            search(
                step,
                step.states(sentence),
                Sampling(3, **own),
                [longest[row]],
                max(longest[row], 1),
            )
        )
        assert [words for _, words, _ in together[row]] == [
            words for _, words, _ in alone
        ]


def test_all_words_of_a_column_are_still_the_most_probable_ones():
    step = ToyStep(vocabulary_size=SIZE)
    settings = {"top_p": 0.6}
    every = np.zeros(DRAWINGS, "int32")
    seeds = np.arange(DRAWINGS)
    found = drawings(step, Sampling(1, top_k=every, seeds=seeds, **settings), 3)
    expected = drawings(step, Sampling(1, seeds=seeds, **settings), 3)
    assert found[1] == expected[1]
    loose = drawings(step, Sampling(1, seeds=seeds), 3)
    assert len(found[1]) < len(loose[1])


def test_a_small_temperature_is_greedy():
    step = ToyStep(30, seed=4)
    greedy = search(step, step.states(3, 5), Sampling(1, 1e-3), [7, 7], 7)
    top = search(step, step.states(3, 5), Sampling(1, top_k=1), [7, 7], 7)
    assert np.array_equal(*map(ops.convert_to_numpy, (greedy.ids, top.ids)))


class Fours(Scorer):
    """Adds to the score of a word, and forbids another one."""

    def bonus(self, states, position, vocabulary_size):
        return ops.cast(ops.arange(vocabulary_size) == 4, "float32") * 3.0

    def suppressed(self, states, position, vocabulary_size):
        return ops.arange(vocabulary_size) == 5


def test_scorers_change_what_is_drawn():
    step = ToyStep(SIZE, end_logit=1.0, seed=3)

    def change(gains):
        gains = gains + 3.0 * (np.arange(SIZE) == 4)
        gains[5] = -np.inf
        return np.exp(gains)

    seeds = np.arange(DRAWINGS, dtype="int32")
    found, counts = drawings(
        step, Sampling(1, seeds=seeds), 3, scorers=[Fours()]
    )
    check_frequencies(counts, drawn_from(step, 5, 3, change))
    for ((score, words, _),) in found[:20]:
        total = 3.0 * words.count(4) + sum(
            step.log_probabilities(5, words[:t])[word]
            for t, word in enumerate((*words, EOS_ID)[:3])
        )
        np.testing.assert_allclose(score, total, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "value",
    [
        *(0, -1.0, float("nan"), None, "0.5"),
        *(np.float32(0), np.int64(0), np.array([-1.0]), np.array([0.5, 0.0])),
        [1.0, -1.0],
        ops.convert_to_tensor([1.0, np.nan]),
        ops.convert_to_tensor(0),
    ],
    ids=repr,
)
def test_what_cannot_be_drawn_by(value):
    with pytest.raises(ValueError, match="`temperature` must be positive"):
        Sampling(1, temperature=value)
    with pytest.raises(ValueError, match="`top_p` must be positive"):
        Sampling(1, top_p=value)
