import collections

import numpy as np
import pytest
from keras import ops

from luong_keras.decoding import sampling
from luong_keras.decoding.sampling import Sampling, uniform
from luong_keras.decoding.scorers import Scorer
from luong_keras.decoding.search import search
from luong_keras.special_tokens import EOS_ID
from tests.decoding.every_translation import SIZE, sampling_distribution
from tests.decoding.toy_step import (
    ToyStep,
    symbol_log_probabilities,
    translations,
)
from tests.layer_checks import few_at_first

pytestmark = pytest.mark.slow_on_jax
NUM_SAMPLES = 4000


def draw_samples(step, strategy, maximum, sentence=5, **options):
    """Sample one sentence often; return the samples and their counts."""
    sentences = [sentence] * NUM_SAMPLES
    found = translations(step, sentences, maximum, strategy=strategy, **options)
    return found, collections.Counter(
        words for row in found for _, words, _ in row
    )


def reference_weights(gains, temperature=1.0, top_k=None, top_p=1.0):
    """Return the weights of the draw."""
    weights = np.exp((gains - gains.max()) / temperature)
    weights /= weights.sum()
    order = np.argsort(-weights)
    if top_k:
        weights[order[top_k:]] = 0
        weights /= weights.sum()
    before = np.cumsum(weights[order]) - weights[order]
    weights[order[before >= top_p]] = 0
    return weights


class Fours(Scorer):
    """A scorer with a bonus for word 4, which forbids word 5."""

    def bonus(self, states, position, vocabulary_size):
        return ops.cast(ops.arange(vocabulary_size) == 4, "float32") * 3.0

    def suppressed(self, states, position, vocabulary_size):
        return ops.arange(vocabulary_size) == 5


FREQUENCIES = [
    ({}, [Fours()]),
    ({"top_k": 0, "top_p": 0.6}, []),
    ({}, []),
    ({"temperature": 0.5}, []),
    ({"temperature": 2.0, "top_k": 2}, []),
    ({"top_p": 0.6}, []),
    ({"temperature": 1.5, "top_k": 3, "top_p": 0.8}, []),
]


@pytest.mark.parametrize(
    "settings, scorers", few_at_first(FREQUENCIES, FREQUENCIES[:2])
)
def test_sample_frequencies_match_probabilities(settings, scorers):
    step = ToyStep(SIZE, end_logit=1.0, seed=3)
    seeds = np.arange(NUM_SAMPLES, dtype="int32")
    bonus = 3.0 if scorers else 0.0

    def sampling_weights(gains):
        if scorers:
            gains = gains + bonus * (np.arange(SIZE) == 4)
            gains[5] = -np.inf
        return reference_weights(gains, **settings)

    found, counts = draw_samples(
        step, Sampling(1, seeds=seeds, **settings), 3, scorers=scorers
    )
    expected = sampling_distribution(step, 5, 3, sampling_weights)
    assert set(counts) <= set(expected)
    for words, probability in expected.items():
        mean = NUM_SAMPLES * probability
        spread = (mean * (1 - probability)) ** 0.5
        # Two more, for translations that are rarely drawn.
        assert abs(counts[words] - mean) < 5 * spread + 2, words
    # Scores are the model's with the scorers' bonuses, not those of the draw.
    for ((score, words, alignments),) in found[:50]:
        symbols = (*words, EOS_ID)[:3]
        total = sum(symbol_log_probabilities(step, 5, symbols))
        total += bonus * words.count(4)
        np.testing.assert_allclose(score, total, rtol=1e-5)
        np.testing.assert_allclose(
            alignments, step.alignment_rows(5, words), atol=1e-6
        )


@pytest.mark.slow
def test_sampling_settings_per_sentence():
    step = ToyStep(40, seed=2)
    sentences, max_lengths = [3, 5, 7, 5], [6, 4, 0, 6]
    settings = {
        "temperature": np.array([0.5, 1.0, 2.0, 3.0], "float32"),
        "top_k": np.array([0, 3, 1, 0], "int32"),
        "top_p": np.array([1.0, 1.0, 0.5, 0.7], "float32"),
    }
    seeds = np.array([4, 1, 9, 4], "int32")
    strategy = Sampling(3, seeds=seeds, **settings)
    batched = translations(step, sentences, max_lengths, strategy=strategy)
    assert len(batched[0]) == 3
    for row, sentence in enumerate(sentences):
        row_settings = {
            name: value[row].item() for name, value in settings.items()
        }
        (single,) = translations(
            step,
            [sentence],
            [max_lengths[row]],
            max_steps=max(max_lengths[row], 1),
            strategy=Sampling(3, seeds=seeds[row : row + 1], **row_settings),
        )
        assert [words for _, words, _ in batched[row]] == [
            words for _, words, _ in single
        ]


def test_rounding_of_sums_draws_no_excluded_word(monkeypatch):
    step, cumsum = ToyStep(SIZE, seed=3), ops.cumsum
    # As in sums of blocks, which may fall between words of weight 0.
    dips = 0.2 * (np.arange(SIZE) % 2 == 0)
    monkeypatch.setattr(
        sampling.ops, "cumsum", lambda x, axis: cumsum(x, axis) - dips
    )
    seeds = np.arange(NUM_SAMPLES, dtype="int32")
    strategy = Sampling(1, top_k=1, seeds=seeds)
    assert len(draw_samples(step, strategy, 3)[1]) == 1


@pytest.mark.parametrize("temperature", [1e-3, 1e-30, 1e-50])
def test_a_small_temperature_is_greedy(temperature):
    step = ToyStep(30, seed=4)
    strategy = Sampling(1, temperature)
    greedy = search(step, step.states(3, 5), strategy, [7, 7], 7)
    top = search(step, step.states(3, 5), Sampling(1, top_k=1), [7, 7], 7)
    assert np.array_equal(*map(ops.convert_to_numpy, (greedy.ids, top.ids)))


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
def test_nonpositive_temperature_and_top_p_are_refused(value):
    with pytest.raises(ValueError, match="`temperature` must be positive"):
        Sampling(1, temperature=value)
    with pytest.raises(ValueError, match="`top_p` must be positive"):
        Sampling(1, top_p=value)


@pytest.mark.parametrize(
    "seeds", [1.2, [1.5, 1.7], 2**40, [2**40, 1], ["a", "b"]], ids=repr
)
def test_seeds_are_integers_of_32_bits(seeds):
    with pytest.raises(ValueError, match="`seeds`, an array of integers from"):
        Sampling(1, seeds=seeds)


def test_top_p_is_a_probability():
    for value in (90, [0.5, 1.5]):
        with pytest.raises(ValueError, match="`top_p` must be at most 1"):
            Sampling(1, top_p=value)


def hashed(*counters):
    """Compute one number of `uniform` with Python integers."""
    bits = 0x9E3779B9
    for counter in counters:
        bits = (bits + (counter % 2**32) * 0x9E3779B9) % 2**32
        for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
            bits = (bits ^ (bits >> shift)) * factor % 2**32
        bits ^= bits >> 16
    return (bits >> 9) / 2**23


def test_numbers_match_the_reference():
    seeds = np.array([[0], [1], [-5], [2**31 - 1]], "int32")
    found = np.array(uniform(seeds, np.arange(3, dtype="int32"), 7))
    expected = [
        [hashed(int(seed), k, 7) for k in range(3)] for seed in seeds[:, 0]
    ]
    np.testing.assert_array_equal(found, np.array(expected, "float32"))


def test_numbers_are_uniform_and_uncorrelated():
    numbers = np.array(
        uniform(
            np.arange(50, dtype="int32")[:, None, None],
            np.arange(10, dtype="int32")[:, None],
            np.arange(100, dtype="int32"),
        )
    )
    counts, _ = np.histogram(numbers, bins=100, range=(0, 1))
    # 50,000 numbers in 100 bins: chi-square, 99 degrees of freedom, 99.99 %.
    assert ((counts - 500) ** 2 / 500).sum() < 161
    for axis, size in enumerate(numbers.shape):
        first, then = (
            np.take(numbers, range(start, size - 1 + start), axis)
            for start in (0, 1)
        )
        assert abs(np.corrcoef(first.ravel(), then.ravel())[0, 1]) < 0.02
