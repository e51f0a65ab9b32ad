"""Searches for few translations: an early end, the same results."""

import itertools

import keras
import numpy as np
import pytest
from keras import ops

from luong_keras.decoding import (
    Beam,
    ConstrainedBeam,
    CoveragePenalty,
    LengthPenalty,
    Scorer,
)
from luong_keras.decoding.search import search
from tests.decoding.toy_step import (
    ConstantStep,
    ToyStep,
    symbol_log_probabilities,
    translations,
)
from tests.layer_checks import few_at_first

B, V, S, MAX_LENGTH = 12, 9, 4, 10


def search_batch(strategy, scorers):
    step = ToyStep(V, S, end_logit=1.5, seed=2)
    return translations(
        step, range(B), MAX_LENGTH, strategy=strategy, scorers=scorers
    )


PHRASES = np.random.default_rng(1).integers(4, V, (B, 1, 2))
STRATEGIES = {
    "beam": lambda **options: Beam(5, **options),
    "larger stack": lambda **options: Beam(3, 7, **options),
    "sizes per sentence": lambda **options: Beam(
        5,
        sizes=np.resize([5, 3], B),
        stack_sizes=np.resize([2, 4], B),
        **options,
    ),
    "phrases": lambda **options: ConstrainedBeam(
        5, PHRASES, np.resize([[2], [0]], (B, 1)), **options
    ),
}
SCORERS = {
    "mean": lambda: [LengthPenalty(1.0)],
    "sum": list,
    "some sums": lambda: [LengthPenalty(np.resize([0.0, 1.0], B))],
    "coverage": lambda: [
        LengthPenalty(0.6),
        CoveragePenalty(0.2, np.ones((B, S), bool)),
    ],
}


def check_same(limited, full, counts):
    """Check that the first `count` translations of each sentence agree."""
    for row, (few, many) in enumerate(zip(limited, full, strict=True)):
        count = np.resize(counts, B)[row]
        assert len(few) >= min(count, len(many))
        assert len(few) <= np.max(counts)
        for one, other in zip(few[:count], many[:count], strict=True):
            assert one[:2] == other[:2]
            np.testing.assert_array_equal(one[2], other[2])


@pytest.mark.slow_after_first
@pytest.mark.slow_on_jax
@pytest.mark.parametrize(
    "strategy, scorers",
    few_at_first(
        itertools.product(STRATEGIES, SCORERS),
        [
            *(("beam", scorers) for scorers in SCORERS),
            ("larger stack", "mean"),
            ("larger stack", "sum"),
            ("sizes per sentence", "some sums"),
            ("sizes per sentence", "coverage"),
            ("phrases", "mean"),
        ],
    ),
)
def test_results_equal_those_of_the_full_search(strategy, scorers):
    full = search_batch(STRATEGIES[strategy](), SCORERS[scorers]())
    for counts in (1, np.resize([1, 3, 9], B)):
        limited = search_batch(
            STRATEGIES[strategy](num_return_sequences=counts),
            SCORERS[scorers](),
        )
        check_same(limited, full, counts)


@pytest.mark.parametrize("counts", [np.int64(2), np.resize([1, 2], B)])
def test_numbers_of_numpy_in_a_compiled_search(counts):
    step, strategy = ToyStep(V, S), Beam(3, num_return_sequences=counts)

    def run(states):
        return search(step, states, strategy, np.full(B, 4), 4).ids

    if keras.backend.backend() == "jax":
        import jax

        run = jax.jit(run)
    assert run(step.states(*range(B))).shape == (B, 2, 4)


def count_steps(num_return_sequences, scorers):
    """Return the number of steps of a search for one sentence."""
    taken = []

    class Counted(ConstantStep):
        def __call__(self, ids, states, position):
            taken.append(position)
            return super().__call__(ids, states, position)

    step = Counted([0.02, 0.04, 0.06, 0.5, 0.1, 0.28])  # `</s>`: 0.5
    strategy = Beam(8, num_return_sequences=num_return_sequences)
    translations(step, [1], 20, strategy=strategy, scorers=scorers)
    return len(taken)


@pytest.mark.slow
@pytest.mark.tensorflow
def test_search_ends_when_no_hypothesis_can_rank_higher():
    scorers = [LengthPenalty(1.0)]
    assert (
        count_steps(1, scorers)
        < count_steps(2, scorers)
        < count_steps(None, scorers)
    )


class Praise(Scorer):
    """A scorer whose bonus may raise a score."""

    per_sentence = ()
    reranks = True

    def bonus(self, states, position, vocabulary_size):
        return ops.ones(vocabulary_size)


@pytest.mark.tensorflow
def test_scores_that_may_rise_need_a_full_stack():
    assert count_steps(1, []) < count_steps(None, [])
    assert count_steps(1, [Praise()]) == count_steps(None, [Praise()])


def test_search_without_finished_hypotheses_does_not_end_early():
    step = ToyStep(V, S, end_logit=-1e6)  # nothing ends
    strategy, scorers = Beam(3, num_return_sequences=1), [LengthPenalty(1.0)]
    found = translations(step, range(B), 5, strategy=strategy, scorers=scorers)
    for sentence, ((score, words, _),) in enumerate(found):
        # A search that ended early would have padding in place of words.
        total = sum(symbol_log_probabilities(step, sentence, words))
        np.testing.assert_allclose(score, total / 5, rtol=1e-5)
