"""Invalid arguments of a search, and their error messages."""

import keras
import numpy as np
import pytest

from luong_keras.decoding import (
    NoRepeatedNgrams,
    Sampling,
    beam_search,
    greedy_search,
    search,
)
from tests.decoding.toy_step import ToyStep, refused

STEP = ToyStep()
STATES = STEP.states(1, 2)


def sampled(step, states, *limits, **options):
    return search(step, states, Sampling(2), *limits, **options)


def beam(*arguments, **options):
    return beam_search(*arguments, beam_size=2, **options)


every_search = pytest.mark.parametrize(
    "run_search", [beam, greedy_search, sampled]
)


@pytest.mark.slow_after_first
@every_search
@pytest.mark.parametrize("lengths", [[5], [5, 5, 5], [[5, 5]]])
def test_lengths_must_be_one_per_sentence(run_search, lengths):
    shape = np.shape(lengths)
    with refused("`max_lengths` must have one number per", "(2,)", f"{shape}"):
        run_search(STEP, STATES, lengths, 5)
    with refused("`min_lengths` must have one number per", "(2,)", f"{shape}"):
        run_search(STEP, STATES, [5, 5], 5, min_lengths=lengths)
    for wrong in ([2.7, 3], [float("nan"), 5]):
        with refused("`max_lengths`, an array of integers", f"{wrong}"):
            run_search(STEP, STATES, wrong, 5)


@every_search
@pytest.mark.parametrize("lengths", [2.5, -1, "five", None])
def test_one_length_must_be_an_integer(run_search, lengths):
    with refused("`max_lengths` must be an integer", f"{lengths!r}"):
        run_search(STEP, STATES, lengths)


@every_search
def test_a_step_must_be_a_function(run_search):
    with refused("Expected: a step function", "Received: None.", "ModelStep"):
        run_search(None, STATES, [5, 5], 5)


def test_one_length_without_states_is_refused():
    with refused("one number per sentence, (B,).", "ops.full((B,), number)"):
        greedy_search(STEP, [], 5, 5)


def test_logits_must_have_a_row_for_each_hypothesis():
    def first_of_beam(ids, states, position):
        logits, states, weights = STEP(ids, states, position)
        return logits[:, :1], states, weights

    with refused("(B, K, V)", "(2, 2)", "Received: shape (2, 1, 8)"):
        beam(first_of_beam, STATES, [5, 5], 5)


@pytest.mark.slow_after_first
@every_search
@pytest.mark.parametrize("name", ["bos_id", "eos_id", "pad_id"])
@pytest.mark.parametrize("value", [8, -1])
def test_ids_outside_the_vocabulary_are_refused(run_search, name, value):
    with refused(f"`{name}` in the vocabulary", "0 to 7", f"{name}={value}"):
        run_search(STEP, STATES, [5, 5], 5, **{name: value})
    run_search(STEP, STATES, [5, 5], 5, **{name: 7})


@pytest.mark.parametrize("given", ["beam", Sampling, None])
def test_invalid_strategy_is_refused(given):
    with refused("a DecodingStrategy", "strategy=Beam(4)", repr(given)):
        search(STEP, STATES, given, [5, 5], 5)


@every_search
@pytest.mark.parametrize(
    "scorers",
    [["prefix"], [NoRepeatedNgrams], "prefix", NoRepeatedNgrams(2), None],
)
def test_scorers_must_be_a_list_of_scorers(run_search, scorers):
    received = scorers[0] if isinstance(scorers, list) else scorers
    each = "a" if isinstance(scorers, list) else "a list, each item a"
    example = "scorers=[NoRepeatedNgrams(3)]"
    with refused(f"{each} Scorer", example, repr(received)):
        run_search(STEP, STATES, [5, 5], 5, scorers=scorers)


@every_search
def test_keras_model_as_step_is_refused(run_search):
    ids = keras.Input((None,), dtype="int32")
    words = keras.layers.Embedding(8, 4)(ids)
    functional = keras.Model(ids, keras.layers.Dense(8)(words), name="mine")
    sequential = keras.Sequential([keras.layers.Embedding(8, 4)], name="mine")
    for model in (functional, sequential, keras.layers.Dense(8, name="mine")):
        with refused(
            "(ids, states, position)",
            f"<{type(model).__name__} name=mine",
            "ModelStep(model, constants)",
        ):
            run_search(model, STATES, [5, 5], 5)


@every_search
@pytest.mark.parametrize(
    "results, received",
    [
        (lambda found: found[0], "1 results"),
        (lambda found: found[:2], "2 results"),
        (lambda found: (found[0][0], *found[1:]), "(1, 8)"),
        (lambda found: (*found[:2], found[2][0]), "(1, 4)"),
    ],
)
def test_results_of_the_step_are_checked(run_search, results, received):
    def step(ids, states, position):
        return results(STEP(ids, states, position))

    with refused("logits (B, K, V)", received):
        run_search(step, STATES, [5, 5], 5)
