import functools

import keras
import numpy as np
import pytest
from keras import ops

import luong_keras as lk
from tests.layer_checks import (
    EXACT,
    assert_all_close,
    check_gradients,
    few_at_first,
    few_on_jax,
    prefix_mask,
    random,
    randomize,
    reference_step,
    to_numpy,
)

STEPS = 3
MASK = prefix_mask([5, 2], 5)
INPUTS = random(2, STEPS, 5, seed=8)
MEMORY = random(2, 5, 6, seed=9)
CELLS = [lk.InputFeedingLSTMCell, lk.InputFeedingGRUCell]


def make(cell_class, attention="general", driver=None, **options):
    if attention in ("monotonic", "predictive"):
        attention = lk.LocalAttention(attention, 1, dtype="float64")
    elif isinstance(attention, str):
        attention = lk.LuongAttention(attention, dtype="float64", dropout=0.5)
    cell = cell_class(4, attention=attention, dtype="float64", **options)
    layer = lk.AttentionRNN(cell, dtype="float64", **(driver or {}))
    return randomize(layer, (None, None, 5), (None, None, 6))


def zero_states(cell):
    return [np.zeros((2, 4)) for _ in cell.state_size]


def stack(steps):
    return np.stack([to_numpy(step) for step in steps], 1)


@pytest.mark.slow_after_first
@pytest.mark.parametrize("input_feeding", [True, False])
@pytest.mark.parametrize("attention", ["general", "monotonic", "predictive"])
@pytest.mark.parametrize("cell_class", CELLS)
def test_layer_loops_over_the_cell(
    cell_class, attention, input_feeding, float64
):
    layer = make(
        cell_class,
        attention,
        driver={"return_state": True},
        num_layers=2,
        input_feeding=input_feeding,
    )
    states = zero_states(layer.cell)
    options = {"memory": MEMORY, "memory_mask": MASK}
    options["return_attention_scores"] = True
    found = layer(INPUTS, **options)
    vectors, alignments = [], []
    for t in range(STEPS):
        vector, states, weights = layer.cell(
            INPUTS[:, t], states, position=t, **options
        )
        vectors.append(vector)
        alignments.append(weights)
    expected = [stack(vectors), stack(alignments), *states]
    assert_all_close(found, expected, **EXACT)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(
    "cell_class, keras_class",
    [
        (lk.InputFeedingLSTMCell, keras.layers.LSTM),
        (lk.InputFeedingGRUCell, keras.layers.GRU),
    ],
)
def test_without_attention_it_equals_the_layer_of_keras(
    cell_class, keras_class, masked, float64
):
    ours = make(
        cell_class,
        attention=None,
        input_feeding=False,
        driver={"return_state": True},
    )
    theirs = keras_class(
        4, return_sequences=True, return_state=True, dtype="float64"
    )
    theirs.build((None, None, 5))
    theirs.set_weights(ours.get_weights())
    initial = [
        random(2, 4, seed=i) for i in range(len(ours.cell.state_size) - 1)
    ]
    mask = prefix_mask([STEPS, 1], STEPS) if masked else None
    expected = theirs(INPUTS, initial_state=initial, mask=mask)
    found = ours(INPUTS, initial_state=initial, mask=mask)
    assert_all_close(found[:-1], expected, **EXACT)
    np.testing.assert_allclose(found[-1], to_numpy(found[0])[:, -1], **EXACT)


@pytest.mark.slow_after_first
@pytest.mark.parametrize("return_sequences", [True, False])
@pytest.mark.parametrize("input_feeding", [True, False])
@pytest.mark.parametrize("attention", ["general", "monotonic"])
def test_masked_steps_keep_the_states(
    attention, input_feeding, return_sequences, float64
):
    layer = make(
        lk.InputFeedingLSTMCell,
        attention,
        driver={"return_state": True, "return_sequences": return_sequences},
        input_feeding=input_feeding,
    )
    padded = layer(INPUTS, memory=MEMORY, mask=prefix_mask([STEPS, 1], STEPS))
    short = layer(INPUTS[:, :1], memory=MEMORY)
    if return_sequences:
        np.testing.assert_allclose(padded[0][1, :1], short[0][1], **EXACT)
    first = 1 if return_sequences else 0
    for found, expected in zip(padded[first:], short[first:], strict=True):
        np.testing.assert_allclose(found[1], expected[1], **EXACT)


@pytest.mark.parametrize("return_sequences", [True, False])
def test_output_of_only_the_last_step_has_no_mask(return_sequences):
    embedding = keras.layers.Embedding(9, 4, mask_zero=True)
    decoder = lk.InputFeedingLSTM(4, return_sequences=return_sequences)
    vectors = decoder(embedding(np.array([[3, 5, 0]])), memory=MEMORY[:1])
    mask = getattr(vectors, "_keras_mask", None)
    assert (mask is not None) == return_sequences


@pytest.mark.parametrize("cell_class", CELLS)
def test_states_may_leave_out_the_attentional_vector(cell_class, float64):
    layer = make(cell_class)
    *states, vector = (
        random(2, 4, seed=i) for i in range(len(layer.cell.state_size))
    )
    part, zero, whole = (
        [
            layer(INPUTS, memory=MEMORY, initial_state=given),
            layer.cell(INPUTS[:, 0], given, memory=MEMORY)[0],
        ]
        for given in (states, [*states, 0 * vector], [*states, vector])
    )
    assert_all_close(part, zero, **EXACT)
    for one, other in zip(whole, part, strict=True):
        assert not np.allclose(to_numpy(one), to_numpy(other))


@pytest.mark.parametrize(
    "sequences, states, scores, count",
    [
        (True, False, False, 0),
        (False, False, False, 0),
        (False, True, True, 5),
        (True, True, False, 4),
        (True, False, True, 2),
    ],
)
def test_returned_values(sequences, states, scores, count):
    layer = lk.InputFeedingLSTM(
        4,
        attention=lk.LuongAttention(),
        return_sequences=sequences,
        return_state=states,
    )
    options = {"return_attention_scores": scores}
    inputs, memory = keras.Input((STEPS, 5)), keras.Input((5, 6))
    symbolic = layer(inputs, memory=memory, **options)
    results = layer(INPUTS, memory=MEMORY, **options)
    if not count:
        symbolic, results = [symbolic], [results]
    assert len(results) == len(symbolic) == max(count, 1)
    assert results[0].shape == ((2, STEPS, 4) if sequences else (2, 4))
    for eager, inferred in zip(results, symbolic, strict=True):
        assert tuple(eager.shape[1:]) == tuple(inferred.shape[1:])
    if not sequences and states:
        np.testing.assert_allclose(results[0], results[-1], rtol=1e-6)


@pytest.mark.slow_after_first
@pytest.mark.parametrize("input_feeding", [True, False])
@pytest.mark.parametrize("cell_class", CELLS)
def test_gradients(cell_class, input_feeding, float64):
    options = {"num_layers": 2, "input_feeding": input_feeding}
    layer = make(cell_class, driver={"return_state": True}, **options)
    memory, *states = (
        keras.Variable(x, dtype="float64")
        for x in (MEMORY, *(random(2, 4, seed=i) for i in range(5)))
    )
    states = states[: len(layer.cell.state_size)]

    def loss():
        vectors, *last_states = layer(
            INPUTS,
            memory=memory + 0,
            memory_mask=MASK,
            mask=prefix_mask([STEPS, 2], STEPS),
            initial_state=[state + 0 for state in states],
        )
        return ops.sum(ops.square(vectors)) + ops.sum(last_states[0])

    check_gradients(loss, [memory, *states, *layer.trainable_variables])


# Dropout.


@pytest.mark.slow_after_first
@pytest.mark.parametrize("steps", [STEPS, 1])
@pytest.mark.parametrize("input_feeding", [True, False])
@pytest.mark.parametrize("cell_class", CELLS)
def test_dropout_masks(cell_class, input_feeding, steps, float64):
    layer = make(cell_class, num_layers=2, input_feeding=input_feeding)
    widths = {"inputs": 5, "layer_1": 4, "attention": 5, "outputs": 4}
    if input_feeding:
        widths["feeding"] = 4
    masks = {
        name: 2.0 * (random(steps, 2, width, seed=seed) > 0)
        for seed, (name, width) in enumerate(widths.items())
    }
    for given in (masks, *({name: mask} for name, mask in masks.items())):
        found, alignments = layer(
            INPUTS,
            memory=MEMORY,
            memory_mask=MASK,
            dropout_masks=given,
            return_attention_scores=True,
        )
        states = zero_states(layer.cell)
        expected, expected_alignments = [], []
        for t in range(STEPS):
            drop = {name: mask[t % steps] for name, mask in given.items()}
            vector, states, weights = reference_step(
                layer.cell, INPUTS[:, t], states, MEMORY, MASK, drop
            )
            expected.append(vector * drop.get("outputs", 1))
            expected_alignments.append(weights)
        np.testing.assert_allclose(found, stack(expected), **EXACT)
        np.testing.assert_allclose(
            alignments, stack(expected_alignments), **EXACT
        )


def memoryless_layer(style, dropout=0.5):
    """Build a layer whose h_t depends only on x_t and on dropout."""
    layer = lk.InputFeedingGRU(
        20,
        attention=None,
        input_feeding=False,
        dropout=dropout,
        dropout_style=style,
        recurrent_initializer="zeros",
    )
    layer.build((None, None, 20))
    bias = np.zeros((2, 60))
    bias[0, :20] = -1e9  # The update gate never keeps the state.
    layer.cell.biases[0].assign(bias)
    return layer


@pytest.mark.slow_on_jax
@pytest.mark.parametrize("style", ["zaremba", "authors", "sequence"])
def test_dropout_styles(style):
    layer = memoryless_layer(style)
    inputs = np.ones((2, STEPS, 20))
    plain = to_numpy(layer(inputs))
    found = to_numpy(layer(inputs, training=True))
    again = to_numpy(layer(inputs, training=True))
    np.testing.assert_allclose(plain[:, 0], plain[:, -1])
    assert not np.array_equal(found, again)
    assert np.any(found == 0) == (style != "authors")
    # One mask per step or one for all steps; never one for all sentences.
    both = (found[:, 0] != 0) & (found[:, 1] != 0)
    same = np.allclose(found[:, 0][both], found[:, 1][both])
    same_zeros = np.array_equal(found[:, 0] == 0, found[:, 1] == 0)
    assert same == (style == "sequence")
    assert same_zeros == (style != "zaremba")
    assert not np.array_equal(found[0], found[1])


def test_dropout_keeps_the_mean():
    layer = memoryless_layer("authors", dropout=0.2)
    ones = ops.convert_to_tensor(np.ones((10, 20, 50)))
    mask = to_numpy(layer._draw_masks(ones, None, True)["inputs"])
    assert mask.shape == (20, 10, 50)
    assert np.unique(mask.round(5)).tolist() == [0, 1.25]
    # Both bounds are five standard deviations of ten thousand draws.
    assert abs((mask == 0).mean() - 0.2) < 0.02
    assert abs(mask.mean() - 1) < 0.025
    # The rate is similar for each unit, sentence and step.
    for axes in ((0, 1), (0, 2), (1, 2)):
        assert (mask == 0).mean(axes).max() < 0.5
        assert (mask == 0).mean(axes).min() > 0
    assert not layer._draw_masks(ones, None, False)


# Errors.


def test_arguments_are_checked():
    cell = lk.InputFeedingLSTMCell(4, attention=None)
    with pytest.raises(ValueError, match="cell.*keras.layers.RNN"):
        lk.AttentionRNN(keras.layers.LSTMCell(4))
    with pytest.raises(ValueError, match="dropout_style.*'variational'"):
        lk.AttentionRNN(cell, dropout_style="variational")
    with pytest.raises(ValueError, match="dropout.*Received: dropout=1.0"):
        lk.AttentionRNN(cell, dropout=1.0)
    with pytest.raises(ValueError, match="cell.attention=None"):
        lk.AttentionRNN(cell)(INPUTS, return_attention_scores=True)


# Continued sequences.

DRIVERS = {
    "lstm": lk.InputFeedingLSTM,
    "gru": lk.InputFeedingGRU,
    "bahdanau-lstm": lk.BahdanauLSTM,
    "bahdanau-gru": lk.BahdanauGRU,
    "without feeding": functools.partial(
        lk.InputFeedingLSTM, input_feeding=False
    ),
}
LONG = random(2, 6, 5, seed=3)
# Masked steps, at the start, inside and at the end, are skipped.
LONG_MASK = np.array([[0, 1, 1, 0, 1, 1], [1, 1, 1, 1, 1, 0]], bool)


def test_the_seed_of_the_attention_seeds_its_decoder():
    options = {"memory": MEMORY, "return_attention_scores": True}
    first, second = (
        lk.InputFeedingLSTM(
            4, attention=lk.LuongAttention("general", dropout=0.5, seed=7)
        )(INPUTS, training=True, **options)[1]
        for _ in range(2)
    )
    np.testing.assert_array_equal(to_numpy(first) == 0, to_numpy(second) == 0)


def monotonic_decoder(kind="lstm", **options):
    attention = lk.LocalAttention("monotonic", half_width=1)
    return DRIVERS[kind](
        4, attention=attention, return_state=True, seed=1, **options
    )


def in_parts(layer, ends, start, mask=None, **options):
    """Call a layer on successive parts of LONG, passing on the states."""
    parts, states, first = [], None, 0
    for end in ends:
        vectors, alignments, *states = layer(
            LONG[:, first:end],
            memory=random(2, 9, 6, seed=9),
            mask=None if mask is None else mask[:, first:end],
            initial_state=states,
            start_position=start(first),
            return_attention_scores=True,
            **options,
        )
        parts.append([to_numpy(vectors), to_numpy(alignments)])
        first = end
    together = [np.concatenate(each, 1) for each in zip(*parts, strict=True)]
    return [*together, *map(to_numpy, states)]


@pytest.mark.slow_on_jax
@pytest.mark.slow_after_first
@pytest.mark.parametrize(
    "training, masked",
    few_at_first(
        [(False, False), (False, True), (True, False), (True, True)],
        [(False, False), (True, True)],
        [(True, True)],
    ),
)
@pytest.mark.parametrize("kind", few_on_jax(DRIVERS, ["lstm", "bahdanau-gru"]))
def test_continued_sequence_equals_the_whole_one(kind, training, masked):
    layer = monotonic_decoder(kind)
    mask = LONG_MASK if masked else None
    options = {"mask": mask, "training": training}
    expected = in_parts(layer, [6], lambda first: None, **options)
    assert len({tuple(row.nonzero()[0]) for row in expected[1][1]}) > 3

    def start(first):
        return LONG_MASK[:, :first].sum(1) if masked else first

    for ends in ([2, 6], range(1, 7)):
        found = in_parts(layer, ends, start, **options)
        assert_all_close(found, expected, atol=1e-6)


def test_start_position_is_required_where_it_matters():
    states = [np.zeros((2, 4))] * 3
    options = {"memory": MEMORY, "initial_state": states}
    for kind in DRIVERS:
        layer = monotonic_decoder(kind)
        given = states[: len(layer.cell.state_size)]
        for inputs in (INPUTS, keras.Input((STEPS, 5), batch_size=2)):
            with pytest.raises(ValueError, match="`start_position=0` at the"):
                layer(inputs, memory=MEMORY, initial_state=given)
    for attention in ("general", "local-p", lk.LocalAttention()):
        layer = lk.InputFeedingLSTM(4, attention=attention)
        np.testing.assert_array_equal(
            layer(INPUTS, **options), layer(INPUTS, start_position=3, **options)
        )


@pytest.mark.parametrize(
    "start", [-1, True, 1.0, "1", np.ones(3, int), np.array([0, -1])]
)
def test_start_position_must_be_a_nonnegative_integer(start):
    with pytest.raises(ValueError, match="`start_position`.*Received"):
        monotonic_decoder()(INPUTS, memory=MEMORY, start_position=start)


@pytest.mark.slow_after_first
@pytest.mark.parametrize(
    "start", ["a number", "one per sentence", "one for all"]
)
def test_model_with_a_start_position_is_saved(start, tmp_path):
    inputs, memory = keras.Input((STEPS, 5)), keras.Input((9, 6))
    states = [keras.Input((4,)) for _ in range(3)]
    more, position = [], 4
    if start != "a number":
        shape = {"shape": ()} if "sentence" in start else {"batch_shape": ()}
        position = keras.Input(**shape, dtype="int32")
        more = [position]
        start = np.array([4, 4]) if "sentence" in start else np.array(4)
    layer = monotonic_decoder()
    results = layer(
        inputs,
        memory=memory,
        initial_state=states,
        start_position=position,
        return_attention_scores=True,
    )
    model = keras.Model([inputs, memory, *states, *more], results)
    arrays = [
        INPUTS,
        random(2, 9, 6),
        *(random(2, 4, seed=i) for i in range(3)),
    ]
    arrays = [array.astype("float32") for array in arrays]
    given = [*arrays, start.astype("int32")] if more else arrays
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    expected = layer(
        arrays[0],
        memory=arrays[1],
        initial_state=arrays[2:],
        start_position=4,
        return_attention_scores=True,
    )
    assert to_numpy(expected[1])[0, 0].nonzero()[0].tolist() == [3, 4, 5]
    for found in (model(given), loaded(given)):
        assert_all_close(found, expected, atol=1e-6)


@pytest.mark.slow
@pytest.mark.tensorflow
def test_model_with_a_start_position_is_exported(tmp_path):
    import tensorflow as tf

    inputs, memory = keras.Input((None, 5)), keras.Input((None, 6))
    states = [keras.Input((4,)) for _ in range(3)]
    position = keras.Input((), dtype="int32")
    results = monotonic_decoder()(
        inputs, memory=memory, initial_state=states, start_position=position
    )
    model = keras.Model([inputs, memory, *states, position], results)
    model.export(str(tmp_path), verbose=False)
    loaded = tf.saved_model.load(str(tmp_path))
    arrays = [INPUTS, MEMORY, *(random(2, 4, seed=i) for i in range(3))]
    arrays = [array.astype("float32") for array in arrays]
    arrays.append(np.array([1, 3], "int32"))
    assert_all_close(loaded.serve(arrays), model(arrays), atol=1e-6)
