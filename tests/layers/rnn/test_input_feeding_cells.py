import keras
import numpy as np
import pytest
from keras import ops

import luong_keras as lk
from tests.layer_checks import (
    EXACT,
    assert_all_close,
    loss_and_gradients,
    prefix_mask,
    random,
    randomize,
    reference_step,
    to_numpy,
)

CELLS = [lk.InputFeedingLSTMCell, lk.InputFeedingGRUCell]
ALL_CELLS = [*CELLS, lk.BahdanauLSTMCell, lk.BahdanauGRUCell]
MASK = prefix_mask([5, 2], 5)
MEMORY = random(2, 5, 6, seed=9)


def make(cell_class, attention="general", **options):
    if isinstance(attention, str):
        attention = lk.LuongAttention(attention, dtype="float64")
    cell = cell_class(4, attention=attention, dtype="float64", **options)
    return randomize(cell, (None, 5), memory_shape=(None, None, 6))


def states_of(cell, *rows):
    return [
        random(*rows, width, seed=seed)
        for seed, width in enumerate(cell.state_size)
    ]


@pytest.mark.slow_after_first
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"num_layers": 2},
        {"num_layers": 2, "input_feeding": False, "use_bias": False},
        {"attention": None},
        {"attention": None, "input_feeding": False},
    ],
    ids=str,
)
@pytest.mark.parametrize("cell_class", CELLS)
def test_one_step(cell_class, options, float64):
    cell = make(cell_class, **options)
    inputs, states = random(2, 5), states_of(cell, 2)
    options = {}
    if cell.attention is not None:
        options = {
            "memory": MEMORY,
            "memory_mask": MASK,
            "return_attention_scores": True,
        }
    found = cell(inputs, states, **options)
    expected = reference_step(cell, inputs, states, MEMORY, MASK)
    np.testing.assert_allclose(found[0], expected[0], **EXACT)
    assert_all_close(found[1], expected[1], **EXACT)
    if options:
        np.testing.assert_allclose(found[2], expected[2], **EXACT)


@pytest.mark.slow_on_jax
@pytest.mark.parametrize("cell_class", ALL_CELLS)
def test_cells_apply_only_given_dropout_masks(cell_class, float64):
    attention = lk.LuongAttention("dot", dropout=0.5, dtype="float64")
    cell = cell_class(6, attention=attention, dtype="float64")
    options = {"memory": MEMORY, "return_attention_scores": True}
    states = states_of(cell, 2)
    plain = cell(random(2, 5), states, **options)[2]
    training = cell(random(2, 5), states, training=True, **options)[2]
    np.testing.assert_array_equal(training, plain)


@pytest.mark.parametrize("score_mode", ["general", "concat"])
def test_keys_are_projected_once(score_mode, float64, monkeypatch):
    cell = make(lk.InputFeedingLSTMCell, score_mode)
    inputs, states = random(2, 5), states_of(cell, 2)
    keys = cell.attention.project_keys(ops.convert_to_tensor(MEMORY))
    plain = cell(inputs, states, memory=MEMORY)[0]
    monkeypatch.setattr(cell.attention, "project_keys", None)
    found = cell(inputs, states, memory=MEMORY, keys=keys)[0]
    np.testing.assert_allclose(found, plain, **EXACT)
    other = cell(inputs, states, memory=MEMORY, keys=-keys)[0]
    assert not np.allclose(to_numpy(other), to_numpy(plain))


@pytest.mark.slow_after_first
@pytest.mark.parametrize(
    "alignment, position",
    [
        *((None, None), ("predictive", 2)),
        *(("monotonic", 2), ("monotonic", np.array([1, 2]))),
    ],
)
@pytest.mark.parametrize("cell_class", ALL_CELLS)
def test_hypotheses_of_a_beam_are_separate_steps(
    cell_class, alignment, position, float64
):
    attention, options = "general", {}
    if alignment is not None:
        attention = lk.LocalAttention(alignment, 1, dtype="float64")
        options = {"position": position}
    cell = make(cell_class, attention, num_layers=2)
    inputs, states = random(2, 3, 5), states_of(cell, 2, 3)
    options = {
        **options,
        "memory": MEMORY,
        "memory_mask": MASK,
        "return_attention_scores": True,
        "dropout_masks": {"attention": 2.0 * (random(2, 5, seed=7) > 0)},
    }
    vectors, new_states, weights = cell(inputs, states, **options)
    assert weights.shape == (2, 3, 5)
    for k in range(3):
        one = cell(inputs[:, k], [s[:, k] for s in states], **options)
        np.testing.assert_allclose(to_numpy(vectors)[:, k], one[0], **EXACT)
        states_of_k = [to_numpy(s)[:, k] for s in new_states]
        assert_all_close(states_of_k, one[1], **EXACT)
        np.testing.assert_allclose(to_numpy(weights)[:, k], one[2], **EXACT)


# States.


@pytest.mark.parametrize(
    "cell_class, num_layers, count",
    [
        (lk.InputFeedingLSTMCell, 3, 7),
        (lk.InputFeedingGRUCell, 3, 4),
        (lk.BahdanauLSTMCell, 1, 3),
        (lk.BahdanauGRUCell, 1, 2),
    ],
)
def test_states(cell_class, num_layers, count):
    cell = cell_class(
        4,
        num_layers=num_layers,
        attention=lk.LuongAttention(),
        dtype="mixed_float16",
    )
    assert list(cell.state_size) == [4] * count
    assert cell.output_size == 4
    states = cell.get_initial_state(batch_size=2)
    assert [to_numpy(s).tolist() for s in states] == [[[0] * 4] * 2] * count
    vector, new_states = cell(random(2, 5), states, memory=random(2, 3, 4))
    for tensor in [*states, *new_states]:
        assert keras.backend.standardize_dtype(tensor.dtype) == "float32"
    assert keras.backend.standardize_dtype(vector.dtype) == "float16"


@pytest.mark.parametrize("unit_forget_bias", [True, False])
def test_initial_bias_equals_that_of_keras(unit_forget_bias):
    cell = lk.InputFeedingLSTMCell(
        4, attention=None, unit_forget_bias=unit_forget_bias
    )
    cell.build((None, 5))
    theirs = keras.layers.LSTM(4, unit_forget_bias=unit_forget_bias)
    theirs.build((None, None, 5))
    np.testing.assert_array_equal(cell.biases[0], theirs.cell.bias)


def test_use_bias_false_adds_no_bias():
    for cell_class in CELLS:
        cell = cell_class(4, attention=None, use_bias=False)
        cell.build((None, 5))
        assert not [v.name for v in cell.weights if "bias" in v.name]


# Errors.


def test_an_attention_layer_needs_a_memory():
    cell = lk.InputFeedingLSTMCell(4, attention=lk.LuongAttention())
    with pytest.raises(ValueError, match="Received: memory=None"):
        cell(random(2, 5), cell.get_initial_state(2))


@pytest.mark.parametrize("options", [{"units": 0}, {"num_layers": 0}])
def test_sizes_are_checked(options):
    with pytest.raises(ValueError, match="at least 1. Received: .*0"):
        lk.InputFeedingLSTMCell(**{"units": 4, **options})


@pytest.mark.parametrize("cell_class", ALL_CELLS)
def test_rnn_of_keras_refuses_the_cells(cell_class):
    cell = cell_class(4, attention=lk.LuongAttention())
    with pytest.raises(ValueError, match="AttentionRNN"):
        keras.layers.RNN(cell)(random(2, 3, 5))


@pytest.mark.parametrize("cell_class", ALL_CELLS)
def test_bias_and_activation_of_the_attentional_vector(cell_class, float64):
    plain = make(cell_class)
    options = {"attentional_bias": True, "attentional_activation": "linear"}
    cell = make(cell_class, **options)
    named = {v.path.split("/")[-1]: v for v in plain.weights}
    bias = np.array([0.5, -1.0, 2.0, 0.0])
    for variable in cell.weights:
        name = variable.path.split("/")[-1]
        variable.assign(bias if name == "attentional_bias" else named[name])
    inputs, states = random(2, 5), states_of(cell, 2)
    expected, _ = plain(inputs, states, memory=MEMORY, memory_mask=MASK)
    found, _ = cell(inputs, states, memory=MEMORY, memory_mask=MASK)
    np.testing.assert_allclose(
        found, np.arctanh(to_numpy(expected)) + bias, rtol=1e-9, atol=1e-9
    )


def test_cell_is_clipped_after_the_hidden_state_is_computed(float64):
    plain, clipped = (
        make(lk.InputFeedingLSTMCell, num_layers=2, cell_clip=clip)
        for clip in (None, 0.1)
    )
    inputs, states = random(2, 5), states_of(clipped, 2)
    _, expected = plain(inputs, states, memory=MEMORY)
    _, found = clipped(inputs, states, memory=MEMORY)
    assert np.abs(to_numpy(expected[1])).max() > 0.1
    np.testing.assert_allclose(
        found[1], np.clip(to_numpy(expected[1]), -0.1, 0.1), **EXACT
    )
    np.testing.assert_allclose(found[0], expected[0], **EXACT)


@pytest.mark.parametrize("clip", [0.0, -1.0])
def test_clips_must_be_positive(clip):
    for name in ("cell_clip", "gradient_clip"):
        with pytest.raises(ValueError, match=f"{name} must be positive"):
            lk.InputFeedingLSTMCell(4, **{name: clip})


def test_gradient_of_the_layer_below_is_clipped(float64):
    cell = make(lk.InputFeedingLSTMCell, num_layers=2, gradient_clip=0.5)
    hidden = keras.Variable(random(2, 4), dtype="float64")
    upstream = ops.convert_to_tensor(random(2, 16, seed=5))
    weights = cell.loop_weights()
    _, (found,) = loss_and_gradients(
        lambda: ops.sum(
            cell.project_below(weights, 1, hidden + 0, {}) * upstream
        ),
        [hidden],
    )
    unclipped = to_numpy(upstream) @ to_numpy(cell.kernels[1]).T
    assert (abs(unclipped) > 0.5).any() and (abs(unclipped) < 0.5).any()
    assert_all_close(found, np.clip(unclipped, -0.5, 0.5), **EXACT)
