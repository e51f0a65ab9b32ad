"""Decoders that `ModelStep` refuses, and their error messages."""

import keras
import numpy as np
import pytest
from keras import layers, ops

from luong_keras.decoding import (
    CoveragePenalty,
    ModelStep,
    beam_search,
    greedy_search,
)
from tests.decoding.small_decoders import SOURCES, FunctionalPair
from tests.decoding.toy_step import refused
from tests.layer_checks import assert_all_close

B, V, U = len(SOURCES), 6, 8
STATE = np.zeros((B, U), "float32")


def beam(step, states, **options):
    return beam_search(step, states, [4] * B, 4, beam_size=2, **options)


def logits_of(ids, *shape):
    """Return distinct logits, the same row for each of ids (N, ...)."""
    rows = ops.cast(ops.arange(np.prod(shape)), "float32") - 3.0
    return ops.zeros((ids.shape[0], *shape)) + ops.reshape(rows, shape)


def test_functional_inputs_must_match():
    decoder = FunctionalPair().decoder
    shapes = "[(None, None), (None, 8), (None, 8)]"
    with refused(shapes, "1 states and 0 constants", "[(5, 1), (5, 8)]"):
        beam(ModelStep(decoder, from_logits=False), [STATE])
    with refused(shapes, "2 states and 1 constants", "(5, 3, 7)"):
        step = ModelStep(decoder, np.zeros((B, 3, 7)), from_logits=False)
        beam(step, [STATE, STATE])
    with refused(shapes, "2 states", "[(5, 1), (5, 8), (5, 9)]"):
        step = ModelStep(decoder, from_logits=False)
        beam(step, [STATE, np.zeros((B, 9), "float32")])


def test_decoder_that_takes_its_states_as_one_list():
    class Decoder(keras.Model):
        def call(self, ids, states, memory):
            return logits_of(ids, V), states

    step = ModelStep(Decoder(), np.zeros((B, 3, 7)))
    with refused("2 states and 1 constants", "(ids, states, memory)"):
        beam(step, [STATE, STATE])
    assert beam(step, [[STATE, STATE]]).ids.shape == (B, 2, 4)


def test_inputs_by_name_are_refused():
    # In the order of the names, the ids would be read as the source.
    source = keras.Input((4,), dtype="int32", name="source")
    target = keras.Input((4,), dtype="int32", name="target")
    read = layers.Embedding(V, 8)(source)[:, :1] * 3
    logits = layers.Dense(V)(read + layers.Embedding(V, 8)(target))
    listed = keras.Model([target, source], logits)
    by_name = keras.Model({"source": source, "target": target}, logits)
    sources = [np.arange(4 * B).reshape(B, 4) % V]
    with refused("order ids, states, constants", "['source', 'target']"):
        beam(ModelStep(by_name, sources, reads_prefix=True), [])
    found, expected = (
        beam(ModelStep(decoder, sources, reads_prefix=True), [])
        for decoder in (
            lambda ids, x: by_name({"target": ids, "source": x}),
            listed,
        )
    )
    np.testing.assert_array_equal(*map(np.array, (found.ids, expected.ids)))


def test_outputs_by_name_are_refused():
    # In the order of the names, `c` would be read as the first state.
    def decoder(ids, h, c):
        return {"logits": logits_of(ids, V), "state_h": h, "state_c": c}

    with refused("order logits, new states", "['logits', 'state_h', "):
        beam(ModelStep(decoder), [STATE, STATE])


@pytest.mark.parametrize(
    "decoder, received",
    [
        (lambda ids, h: logits_of(ids, V), "1 outputs, of shapes [(5, 6)]"),
        (
            lambda ids, h: (logits_of(ids, V), h, h),
            "3 outputs, of shapes [(5, 6), (5, 8), (5, 8)]",
        ),
    ],
)
def test_number_of_outputs_is_checked(decoder, received):
    with refused("returns logits, 1 new states. Received: ", received):
        beam(ModelStep(decoder), [STATE])
    step = ModelStep(
        lambda ids: logits_of(ids, V), return_attention_scores=True
    )
    with refused("logits, 0 new states and attention weights", "1 outputs"):
        beam(step, [])


def test_states_must_keep_their_width():
    step = ModelStep(lambda ids, h: (logits_of(ids, V), h[:, 1:]))
    with refused("shapes of the old ones, [(5, 8)]", "Received: [(5, 7)]"):
        beam(step, [STATE])


def test_constants_must_match_the_batch():
    step = ModelStep(lambda ids, x: logits_of(ids, V), np.zeros((3, 2)))
    with refused("constants of B = 5 sentences", "Received: shape (3, 2)"):
        beam(step, [STATE][:0])


@pytest.mark.parametrize("shape", [(), (4, V), (1, 1, V)])
def test_rank_of_logits_is_checked(shape):
    step = ModelStep(lambda ids: logits_of(ids, *shape))
    with refused("(N, V) or (N, 1, V)", f"shape {(B, *shape)}", "reads_prefix"):
        beam(step, [])


@pytest.mark.parametrize("shape", [(V,), (1, V), (5, V)])
def test_prefix_logits_must_cover_all_ids(shape):
    step = ModelStep(lambda ids: logits_of(ids, *shape), reads_prefix=True)
    with refused("(N, T, V)", "of the 4 ids so far", f"shape {(B, *shape)}"):
        beam(step, [])


def test_rank_of_attention_weights_is_checked():
    def decoder(ids):
        return logits_of(ids, V), ops.ones((ids.shape[0], 2, 1, 3))

    step = ModelStep(decoder, return_attention_scores=True)
    with refused("(N, S) or (N, 1, S)", f"Received: shape {(B, 2, 1, 3)}"):
        beam(step, [])


def test_logits_and_probabilities_are_told_apart():
    def probabilities(ids):
        return ops.softmax(logits_of(ids, V))

    with refused("logits, as from_logits=True", "`from_logits=False`"):
        beam(ModelStep(probabilities), [])
    with refused("probabilities, as from_logits=False", "`from_logits=True`"):
        step = ModelStep(lambda ids: logits_of(ids, V), from_logits=False)
        beam(step, [])
    # Log-probabilities are logits.
    beam(ModelStep(lambda ids: ops.log(probabilities(ids))), [])


def test_missing_prefix_is_refused():
    step = ModelStep(lambda ids: logits_of(ids, 4, V), reads_prefix=True)
    with refused("first_states"):
        step(np.zeros((B, 1), "int32"), [], 0)


def test_coverage_needs_attention_weights():
    step = ModelStep(lambda ids: logits_of(ids, V))
    with refused("`CoveragePenalty` needs", "returns None"):
        beam(step, [], scorers=[CoveragePenalty(0.2)])


def test_states_must_keep_their_number_and_shapes():
    for states in ([STATE[:, None, 1:]], [], [STATE[:, None]] * 2):
        with refused("number and the shapes of the old ones, [(5, 1, 8)]"):
            greedy_search(
                lambda ids, _, t, new=states: (ops.zeros((B, 1, V)), new, None),
                [STATE],
                4,
            )


@pytest.mark.slow
def test_layers_and_sequential_models_are_decoders():
    # A language model: its one input is not a list.
    ids = keras.Input((None,), dtype="int32")
    words = layers.Dense(V)(layers.Embedding(V, 4)(ids))
    for decoder in (
        keras.Model(ids, words),
        keras.Sequential([layers.Embedding(V, 4), layers.Dense(V)]),
        layers.Embedding(V, V),
    ):
        found = beam(ModelStep(decoder), [])
        prefix = beam(ModelStep(decoder, reads_prefix=True), [])
        assert_all_close(found, prefix, rtol=1e-5)
