import numpy as np
import pytest

import luong_keras as lk
from tests.layer_checks import (
    EXACT,
    assert_all_close,
    prefix_mask,
    random,
    randomize,
    reference_attention,
    reference_recurrence,
    to_numpy,
)

MASK = prefix_mask([5, 2], 5)


@pytest.mark.parametrize("normalize", [False, True])
def test_the_score_is_additive(normalize, float64):
    layer = lk.BahdanauAttention(7, normalize=normalize, dtype="float64")
    randomize(layer, (None, None, 4), (None, None, 3))
    query, memory = random(2, 4), random(2, 5, 3)
    found = layer(query, memory, value_mask=MASK, return_attention_scores=True)
    expected = reference_attention(additive_score(layer), query, memory, MASK)
    assert_all_close(found, expected, **EXACT)


def additive_score(attention):
    query_kernel = to_numpy(attention.score.query_kernel)
    key_kernel = to_numpy(attention.score.key_kernel)
    vector = to_numpy(attention.score.attention_vector)
    bias = 0.0
    if attention.normalize:
        vector *= to_numpy(attention.score.gain) / np.sqrt(np.sum(vector**2))
        bias = to_numpy(attention.score.bias)
    return lambda s, h: (
        vector @ np.tanh(s @ query_kernel + h @ key_kernel + bias)
    )


def test_norm_of_a_normalized_attention_vector_is_ignored():
    layer = lk.BahdanauAttention(7, normalize=True)
    query, memory = random(2, 4), random(2, 5, 3)
    before = layer(query, memory)
    assert float(layer.score.gain) == pytest.approx(7**-0.5)
    layer.score.attention_vector.assign(3 * layer.score.attention_vector)
    np.testing.assert_allclose(layer(query, memory), before, rtol=1e-6)


def test_use_scale_is_refused_for_a_normalized_score():
    with pytest.raises(ValueError, match="Leave `use_scale` out"):
        lk.BahdanauAttention(7, normalize=True, use_scale=True)


def reference_path(cell, inputs, states, memory):
    """Compute h_{t-1} -> a_t -> c_t -> h_t and the output of eq. 5."""
    vectors, alignments = [], []
    hidden = states[-2] if "GRU" in type(cell).__name__ else states[-3]
    states = states[:-1]
    for x in inputs.swapaxes(0, 1):
        context, weights = reference_attention(
            additive_score(cell.attention), hidden, memory, MASK
        )
        states, hidden = reference_recurrence(cell, x, context, states, {})
        both = np.concatenate([context, hidden], -1)
        vectors.append(np.tanh(both @ to_numpy(cell.attentional_kernel)))
        alignments.append(weights)
    return np.stack(vectors, 1), np.stack(alignments, 1), states


@pytest.mark.slow_on_jax
@pytest.mark.parametrize(
    "layer_class, num_layers, num_states",
    [
        (lk.BahdanauLSTM, 1, 3),
        (lk.BahdanauLSTM, 2, 5),
        (lk.BahdanauGRU, 2, 3),
    ],
)
def test_decoder_follows_the_bahdanau_path(
    layer_class, num_layers, num_states, float64
):
    layer = layer_class(
        4,
        num_layers=num_layers,
        attention=lk.BahdanauAttention(3, dtype="float64"),
        return_state=True,
        dtype="float64",
    )
    randomize(layer, (None, None, 5), (None, None, 6))
    inputs, memory = random(2, 3, 5), random(2, 5, 6)
    initial = [random(2, 4, seed=i) for i in range(num_states)]
    vectors, alignments, *states = layer(
        inputs,
        memory=memory,
        memory_mask=MASK,
        initial_state=initial,
        return_attention_scores=True,
    )
    expected = reference_path(layer.cell, inputs, initial, memory)
    np.testing.assert_allclose(vectors, expected[0], **EXACT)
    np.testing.assert_allclose(alignments, expected[1], **EXACT)
    for state, expected_state in zip(states, expected[2], strict=False):
        np.testing.assert_allclose(state, expected_state, **EXACT)
    np.testing.assert_allclose(states[-1], expected[0][:, -1], **EXACT)


@pytest.mark.parametrize(
    "cell_class", [lk.BahdanauLSTMCell, lk.BahdanauGRUCell]
)
def test_bahdanau_cells_need_attention(cell_class):
    with pytest.raises(ValueError, match='attention="bahdanau"'):
        cell_class(4, attention=None)
