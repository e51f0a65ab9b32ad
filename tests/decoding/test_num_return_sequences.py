"""A search for few translations ends earlier and finds the same ones."""

import itertools

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
from tests.decoding.toy_step import ConstantStep, ToyStep, as_lists
from tests.layer_checks import few_at_first

B, V, S, MAX_LENGTH = 12, 9, 4, 10


def found(strategy, scorers):
    step = ToyStep(V, S, end_logit=1.5, seed=2)
    return searched(step, step.states(*range(B)), strategy, scorers, MAX_LENGTH)


def searched(step, states, strategy, scorers, maximum):
    return as_lists(
        search(
            step,
            states,
            strategy,
            max_lengths=np.full(len(states[0]), maximum),
            max_steps=maximum,
            scorers=scorers,
        )
    )


PHRASES = np.random.default_rng(1).integers(4, V, (B, 1, 2))
STRATEGIES = {
    "beam": lambda **wanted: Beam(5, **wanted),
    "a larger stack": lambda **wanted: Beam(3, 7, **wanted),
    "a stack of each": lambda **wanted: Beam(
        5,
        sizes=np.resize([5, 3], B),
        stack_sizes=np.resize([2, 4], B),
        **wanted,
    ),
    "phrases": lambda **wanted: ConstrainedBeam(
        5, PHRASES, np.resize([[2], [0]], (B, 1)), **wanted
    ),
}
SCORERS = {
    "a mean": lambda: [LengthPenalty(1.0)],
    "a sum": list,
    "some sums": lambda: [LengthPenalty(np.resize([0.0, 1.0], B))],
    "coverage": lambda: [
        LengthPenalty(0.6),
        CoveragePenalty(0.2, np.ones((B, S), bool)),
    ],
}


def same(some, every, wanted):
    """Whether the first `wanted` of each sentence are the same."""
    for row, (few, many) in enumerate(zip(some, every, strict=True)):
        count = np.resize(wanted, B)[row]
        assert len(few) >= min(count, len(many))
        assert len(few) <= np.max(wanted)
        for one, other in zip(few[:count], many[:count], strict=True):
            assert one[:2] == other[:2]
            np.testing.assert_array_equal(one[2], other[2])


@pytest.mark.slow_on_jax
@pytest.mark.parametrize(
    "strategy, scorers",
    few_at_first(
        itertools.product(STRATEGIES, SCORERS),
        [
            *(("beam", scorers) for scorers in SCORERS),
            ("a larger stack", "a mean"),
            ("a larger stack", "a sum"),
            ("a stack of each", "some sums"),
            ("a stack of each", "coverage"),
            ("phrases", "a mean"),
        ],
    ),
)
def test_what_is_wanted_is_that_of_the_whole_search(strategy, scorers):
    every = found(STRATEGIES[strategy](), SCORERS[scorers]())
    for wanted in (1, np.resize([1, 3, 9], B)):
        some = found(
            STRATEGIES[strategy](num_return_sequences=wanted),
            SCORERS[scorers](),
        )
        same(some, every, wanted)


def steps(wanted, scorers):
    """How many steps a search for one sentence takes that ends soon."""
    taken = []
    constant = ConstantStep([0.02, 0.04, 0.06, 0.5, 0.1, 0.28])  # `</s>`: 0.5

    def step(ids, states, position):
        taken.append(position)
        return constant(ids, states, position)

    strategy = Beam(8, num_return_sequences=wanted)
    searched(step, [np.zeros((1, 1), "float32")], strategy, scorers, 20)
    return len(taken)


@pytest.mark.tensorflow
def test_it_ends_when_nothing_can_come_among_them():
    scorers = [LengthPenalty(1.0)]
    assert steps(1, scorers) < steps(2, scorers) < steps(None, scorers)


class Praise(Scorer):
    """A sum with it may rise."""

    per_sentence = ()

    def bonus(self, states, position, vocabulary_size):
        return ops.ones(vocabulary_size)


@pytest.mark.tensorflow
def test_a_sum_that_may_rise_waits_for_all_of_the_stack():
    assert steps(1, []) < steps(None, [])
    assert steps(1, [Praise()]) == steps(None, [Praise()])


def test_fewer_than_wanted_are_no_reason_to_end():
    step = ToyStep(V, S, end_logit=-1e6)  # nothing ends
    states, scorers = step.states(*range(B)), [LengthPenalty(1.0)]
    found = searched(step, states, Beam(3, num_return_sequences=1), scorers, 5)
    for sentence, ((score, words, _),) in enumerate(found):
        # One that had ended before would have padding in place of words.
        total = sum(
            step.log_probabilities(sentence, words[:i])[word]
            for i, word in enumerate(words)
        )
        np.testing.assert_allclose(score, total / 5, rtol=1e-5)
