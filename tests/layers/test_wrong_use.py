"""Errors for wrong use of layers, and results of empty inputs."""

import json

import keras
import numpy as np
import pytest

import luong_keras as lk
from luong_keras.layers.attention.scores import DotScore, Score
from tests.layer_checks import (
    BACKEND,
    LAYERS,
    assert_all_close,
    dtype_of,
    random,
    to_numpy,
)
from tests.programs import run_program

# These checks do not depend on the backend.
pytestmark = pytest.mark.slow_on_jax

QUERY, MEMORY = random(2, 3, 4), random(2, 5, 4, seed=1)
INPUTS = random(2, 3, 6, seed=2)
IDS = np.ones((2, 3), "int32")
SHORT = np.ones((2, 4), bool)
ADDITIVE = np.where(np.ones((2, 5)), 0.0, -1e9).astype("float32")


def attend(**options):
    arguments = {"query": QUERY, "value": MEMORY, **options}
    return lk.LuongAttention("dot")(**arguments)


def attend_at(position):
    return lk.LocalAttention("monotonic", half_width=1)(
        QUERY[:, 0], MEMORY, position=position
    )


def decode(layer=None, **options):
    layer = layer or lk.InputFeedingLSTM(4)
    return layer(INPUTS, **{"memory": MEMORY, **options})


def step_without_attention(**options):
    cell = lk.InputFeedingLSTMCell(4, attention=None)
    return cell(QUERY[:, 0], [QUERY[:, 0]] * 3, **options)


WRONG = {
    # Masks.
    "mask of another length": (
        lambda: attend(value_mask=SHORT),
        r"`value_mask`.*Expected: shape \(2, 5\). Received: \(2, 4\)",
    ),
    "query mask of another length": (
        lambda: attend(query_mask=SHORT),
        r"`query_mask`.*\(2, 3\). Received: \(2, 4\)",
    ),
    "mask of another length, local": (
        lambda: lk.LocalAttention(half_width=1)(
            QUERY, MEMORY, value_mask=SHORT
        ),
        "`value_mask`.*Received",
    ),
    "memory mask of another length": (
        lambda: decode(memory_mask=SHORT),
        "`memory_mask`.*Received",
    ),
    "additive mask": (
        lambda: attend(value_mask=ADDITIVE),
        "`value_mask` must be boolean.*float.*`mask > -1`",
    ),
    "additive memory mask": (
        lambda: decode(memory_mask=ADDITIVE),
        "`memory_mask` must be boolean",
    ),
    "encoder's mask of another length": (
        lambda: lk.Encoder(4)(INPUTS, mask=SHORT),
        "`mask`.*Received",
    ),
    # Tensors.
    "batches that differ": (
        lambda: attend(value=MEMORY[:1]),
        "same batch size. Received: query of 2, value of 1",
    ),
    "batches that differ, decoder": (
        lambda: decode(memory=MEMORY[:1]),
        "same batch size",
    ),
    "a query of ids": (
        lambda: attend(query=np.ones((2, 3, 4), "int32")),
        "`query` must hold vectors of floats.*int32.*Embed",
    ),
    "inputs of ids": (
        lambda: lk.InputFeedingLSTM(4)(IDS, memory=MEMORY),
        r"Expected: vectors \(B, T, E\)",
    ),
    "a memory without attention": (
        lambda: decode(lk.InputFeedingLSTM(4, attention=None)),
        "no attention and cannot read a memory",
    ),
    "attention without a memory": (
        lambda: lk.InputFeedingLSTM(4)(INPUTS),
        "something to attend to.*attention=None",
    ),
    "a memory for a cell without attention": (
        lambda: lk.InputFeedingLSTMCell(4, attention=None)(
            INPUTS[:, 0], [np.zeros((2, 4))] * 3, memory=MEMORY
        ),
        "cannot read a memory",
    ),
    "ids for a cell": (
        lambda: lk.InputFeedingLSTMCell(4, attention=None)(
            IDS[0, :1], [np.zeros((1, 4))] * 3
        ),
        r"Expected: vectors \(B, E\) or \(B, K, E\)",
    ),
    "a mask for a cell": (
        lambda: lk.InputFeedingLSTMCell(4)(
            INPUTS[:, 0], [np.zeros((2, 4))] * 3, query_mask=IDS > 0
        ),
        "a cell reads one word per call",
    ),
    "one tensor as states": (
        lambda: decode(initial_state=np.zeros((3, 4))),
        r"`initial_state` must hold 3 tensors.*one tensor of shape \(3, 4\)",
    ),
    "a number as states": (
        lambda: decode(initial_state=5),
        "`initial_state` must hold 3 tensors.*Received: 5",
    ),
    "a dictionary of states": (
        lambda: decode(initial_state={"h": 5}),
        "`initial_state` must hold 3 tensors.*Received: {'h': 5}",
    ),
    "too few states": (
        lambda: decode(initial_state=[np.zeros((2, 4))]),
        "`initial_state` must hold 3 tensors.*Received: 1 tensors",
    ),
    "an unknown dropout mask": (
        lambda: decode(dropout_masks={"input": np.zeros((3, 2, 6))}),
        r"\['inputs', 'feeding', 'attention', 'outputs'\].*\['input'\]",
    ),
    "a dropout mask that this cell does not read": (
        lambda: lk.InputFeedingLSTMCell(4, input_feeding=False)(
            INPUTS[:, 0],
            [np.zeros((2, 4))] * 3,
            memory=MEMORY,
            dropout_masks={"feeding": np.zeros((2, 4))},
        ),
        r"some of \['inputs', 'attention'\].*\['feeding'\]",
    ),
    "a fractional position": (
        lambda: attend_at(1.9),
        "`position` must be an integer.*Received: position=1.9",
    ),
    "a negative position": (
        lambda: attend_at(-3),
        "`position` must be an integer and at least 0.*-3",
    ),
    "fractional positions": (
        lambda: attend_at(np.array([0.5, 1.0])),
        "`position` must be an integer.*0.5",
    ),
    "negative positions": (
        lambda: attend_at(np.array([-1, 1])),
        "`position` counts from 0.*-1",
    ),
    "positions of two sentences": (
        lambda: lk.LocalAttention("monotonic", half_width=1)(
            QUERY, MEMORY, position=np.array([3, 5])
        ),
        r"broadcast to \(B, T\).*`position\[:, None\]`.*\(2,\)",
    ),
    "positions of three sentences for two": (
        lambda: attend_at(np.array([3, 5, 7])),
        r"broadcast to \(B, T\).*position.shape=\(3,\)",
    ),
    "a fractional position in a cell": (
        lambda: lk.InputFeedingLSTMCell(4, attention="local-m")(
            INPUTS[:, 0], [np.zeros((2, 4))] * 3, memory=MEMORY, position=0.5
        ),
        "`position` must be an integer.*0.5",
    ),
    "keys of another memory": (
        lambda: attend(keys=MEMORY[:, :4]),
        "`keys` must be `project_keys",
    ),
    # Arguments.
    "a fractional half width": (
        lambda: lk.LocalAttention(half_width=2.5),
        "`half_width` must be an integer.*Received: half_width=2.5",
    ),
    "a half width as text": (
        lambda: lk.LocalAttention(half_width="5"),
        "`half_width` must be an integer.*Received: half_width='5'",
    ),
    "fractional units": (
        lambda: lk.InputFeedingLSTM(4.5),
        "`units` must be an integer.*Received: units=4.5",
    ),
    "an attention layer of Keras": (
        lambda: lk.InputFeedingLSTM(4, attention=keras.layers.Attention()),
        '`attention` must be.*Received: .*Pass "dot"',
    ),
    "a class as attention": (
        lambda: lk.InputFeedingLSTM(4, attention=lk.LocalAttention),
        r"Pass an object, `LocalAttention\(\)`",
    ),
    "another layer as attention": (
        lambda: lk.InputFeedingLSTM(4, attention=keras.layers.Dense(4)),
        "Derive yours from `LuongAttention`",
    ),
    "a score as attention": (
        lambda: lk.InputFeedingLSTM(4, attention=DotScore()),
        r"Pass `LuongAttention\(score\)`",
    ),
    "an unknown attention": (
        lambda: lk.InputFeedingLSTM(4, attention="genral"),
        "one of the names.*'local-p'.*Received: attention='genral'",
    ),
    "a class as score": (
        lambda: lk.LuongAttention(DotScore),
        r"Write `DotScore\(\)`",
    ),
    "options of another score": (
        lambda: lk.LuongAttention("dot", mask_location=False),
        "`mask_location` belongs only to `score_mode='location'`",
    ),
    "options with a user-defined score": (
        lambda: lk.LuongAttention(DotScore(), units=3),
        "`units` belongs only to `score_mode='concat'`.*DotScore",
    ),
    "a bidirectional decoder": (
        lambda: keras.layers.Bidirectional(lk.InputFeedingLSTM(4)),
        r"one direction.*`Encoder\(bidirectional=True\)`",
    ),
    "odd units for two directions": (
        lambda: lk.Encoder(9, bidirectional=True),
        "needs even `units`.*Received: units=9",
    ),
    "a misspelt dropout mask of the encoder": (
        lambda: lk.Encoder(4)(INPUTS, dropout_masks={"input": INPUTS}),
        r"a mask that nothing reads.*'inputs', 'outputs'.*masks\['input'\]",
    ),
    "a mask of no memory": (
        lambda: lk.InputFeedingLSTM(4, attention=None)(
            INPUTS, memory_mask=SHORT
        ),
        "Received: `memory_mask`, with attention=None",
    ),
    "keys of no memory": (
        lambda: step_without_attention(keys=MEMORY),
        "Received: `keys`, with attention=None",
    ),
    "symbolic weights of no attention": (
        lambda: lk.InputFeedingLSTMCell(4, attention=None)(
            *(keras.Input((4,)), [keras.Input((4,))] * 3),
            return_attention_scores=True,
        ),
        "needs a cell with an attention layer",
    ),
    "steps of other sentences": (
        lambda: lk.InputFeedingLSTMCell(4, attention="local-m")(
            *(QUERY[:, 0], [QUERY[:, 0]] * 3),
            memory=MEMORY,
            position=np.array([0, 1, 2]),
        ),
        r"`position` must be one decoder step.*\(\) or \(2,\)",
    ),
    "losses of another layer": (
        lambda: lk.WordLosses(keras.layers.Dense(9)),
        "`projection` must be a layer of class OutputProjection",
    ),
    "a table as embedding": (
        lambda: lk.OutputProjection(9, embedding=np.ones((9, 4))),
        "`embedding` must be a layer of class Embedding, or None",
    ),
    "a score without __call__": (
        lambda: lk.LuongAttention(Score())(QUERY, MEMORY),
        r"must define `__call__\(query, keys\)`",
    ),
}


@pytest.mark.parametrize("call, message", WRONG.values(), ids=list(WRONG))
def test_wrong_calls_are_refused(call, message):
    with pytest.raises((ValueError, NotImplementedError), match=message):
        call()


def test_symbolic_calls_are_checked():
    query, memory = keras.Input((3, 4)), keras.Input((5, 4))
    short = keras.Input((4,), dtype="bool")
    with pytest.raises(ValueError, match="`value_mask`"):
        lk.LuongAttention()(query, memory, value_mask=short)
    with pytest.raises(ValueError, match="`memory_mask`"):
        lk.InputFeedingLSTM(4)(query, memory=memory, memory_mask=short)
    with pytest.raises(ValueError, match="cannot read a memory"):
        lk.InputFeedingLSTM(4, attention=None)(query, memory=memory)


@pytest.mark.parametrize(
    "typo",
    [
        lambda: lk.LocalAttention(half_widht=3),
        lambda: lk.LocalAttention(max_length=3),
        lambda: lk.LocalAttention(mask_location=False),
        lambda: lk.InputFeedingLSTM(4, droput=0.1),
        lambda: lk.InputFeedingGRUCell(4, cell_clip=1.0),
        lambda: lk.Encoder(4, layers=2),
        lambda: lk.OutputProjection(4, bias=True),
    ],
)
def test_an_unknown_argument_is_a_type_error(typo):
    with pytest.raises(TypeError, match="unexpected keyword argument"):
        typo()


# Names and positions of arguments.


def test_second_argument_is_the_number_of_layers():
    assert lk.InputFeedingLSTMCell(4, 2).num_layers == 2
    assert lk.InputFeedingLSTM(4, 2).cell.num_layers == 2
    assert lk.InputFeedingGRU(4, 3).cell.num_layers == 3
    assert lk.BahdanauLSTM(4, 2).cell.num_layers == 2


def test_attention_may_be_given_by_name():
    def named(name):
        return lk.InputFeedingLSTM(4, attention=name).cell.attention

    assert type(named("concat")) is lk.LuongAttention
    assert named("concat").score_mode == "concat"
    assert named("local-m").alignment == "monotonic"
    assert named("local-p").alignment == "predictive"
    assert type(named("bahdanau")) is lk.BahdanauAttention
    assert named(None) is None
    default = lk.InputFeedingLSTM(4).cell.attention
    assert default.score_mode == "general"
    assert type(lk.BahdanauGRU(4).cell.attention) is lk.BahdanauAttention
    half = lk.InputFeedingLSTM(4, attention="dot", dtype="mixed_bfloat16")
    assert half.cell.attention.compute_dtype == "bfloat16"


@pytest.mark.slow_after_first
@pytest.mark.parametrize("score", ["dot", "scaled_dot", "cosine"])
@pytest.mark.parametrize("attention", [lk.LuongAttention, lk.LocalAttention])
@pytest.mark.parametrize(
    "kind",
    [
        lambda attention: attention,
        lambda attention: lk.InputFeedingLSTM(4, attention=attention),
        lambda attention: lk.InputFeedingGRU(4, attention=attention),
        lambda attention: lk.BahdanauLSTM(4, attention=attention),
        lambda attention: lk.BahdanauGRU(4, attention=attention),
    ],
    ids=["attention", "LSTM", "GRU", "Bahdanau LSTM", "Bahdanau GRU"],
)
def test_a_layer_may_be_called_again_after_a_wrong_width(
    kind, attention, score
):
    layer, new = (kind(attention(score_mode=score)) for _ in range(2))
    with pytest.raises(ValueError, match="last dimensions must be equal"):
        layer(QUERY, INPUTS)
    assert not layer.weights
    layer(QUERY, MEMORY)
    new(QUERY, MEMORY)
    assert [w.name for w in layer.weights] == [w.name for w in new.weights]


@pytest.mark.parametrize("kind", [lk.LuongAttention, lk.LocalAttention])
def test_a_taken_score_is_refused_at_each_call(kind):
    score = DotScore()
    lk.LuongAttention(score)(QUERY, MEMORY)
    layer = kind(score_mode=score)
    for _ in range(2):
        with pytest.raises(ValueError, match="belongs to one attention layer"):
            layer(QUERY, MEMORY)


class Projected(DotScore):
    """A dot product after a projection of the query."""

    def build(self, add_weight, query_shape, value_shape):
        shape = (query_shape[-1], value_shape[-1])
        self.kernel = add_weight("projection", shape)

    def __call__(self, query, keys):
        return super().__call__(query @ self.kernel, keys)


def test_a_subclass_of_a_score_may_allow_other_widths():
    attention = lk.LuongAttention(Projected())
    assert attention(QUERY, INPUTS).shape == (2, 3, 6)


# User-defined scores.


@keras.saving.register_keras_serializable("tests")
class Sharp(Score):
    """A dot product with a weight and an argument."""

    def __init__(self, power=1.0):
        self.exponent = power

    def build(self, add_weight, query_shape, value_shape):
        self.sharpness = add_weight("sharpness", (query_shape[-1],))

    def __call__(self, query, keys):
        swapped = keras.ops.swapaxes(keys, -1, -2)
        found = keras.ops.matmul(query * self.sharpness, swapped)
        return found * self.exponent

    def get_config(self):
        return {"power": self.exponent}


@pytest.mark.parametrize("kind", [lk.LuongAttention, lk.LocalAttention])
def test_user_defined_score_is_saved_and_loaded(kind, tmp_path):
    query, memory = keras.Input((3, 4)), keras.Input((5, 4))
    attention = kind(score_mode=Sharp(3.0))
    decoder = lk.InputFeedingLSTM(4, attention=attention)
    model = keras.Model([query, memory], decoder(query, memory=memory))
    assert '"power": 3.0' in json.dumps(decoder.get_config())
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    assert again.layers[-1].cell.attention.score.exponent == 3.0
    np.testing.assert_array_equal(
        again([QUERY, MEMORY]), model([QUERY, MEMORY])
    )


# Empty inputs.


@pytest.mark.parametrize(
    "batch, steps, source", [(0, 3, 5), (2, 0, 5), (2, 3, 0), (0, 0, 0)]
)
@pytest.mark.parametrize("training", [True, False])
def test_empty_inputs_give_empty_or_zero_outputs(
    batch, steps, source, training
):
    query, memory = random(batch, steps, 4), random(batch, source, 4)
    for attention in (
        lk.LuongAttention("concat"),
        lk.LuongAttention("location"),
        lk.LocalAttention(half_width=1),
        lk.LocalAttention("monotonic", half_width=1),
    ):
        context, weights = attention(
            query,
            memory,
            query_mask=np.ones((batch, steps), bool),
            training=training,
            return_attention_scores=True,
        )
        assert tuple(context.shape) == (batch, steps, 4)
        assert tuple(weights.shape) == (batch, steps, source)
        if source == 0:
            assert not to_numpy(context).any()
    decoder = lk.InputFeedingLSTM(4, attention="local-p", return_state=True)
    start = [random(batch, 4, seed=i) for i in range(3)]
    vectors, alignments, *states = decoder(
        query,
        memory=memory,
        initial_state=start,
        training=training,
        return_attention_scores=True,
    )
    assert tuple(vectors.shape) == (batch, steps, 4)
    assert tuple(alignments.shape) == (batch, steps, source)
    assert np.isfinite(to_numpy(vectors)).all()
    if steps == 0:
        assert_all_close(states, start, rtol=1e-6)
    memory, *states = lk.Encoder(4, bidirectional=True)(
        random(batch, source, 3), training=training
    )
    assert tuple(memory.shape) == (batch, source, 4)
    if source == 0:
        assert not any(to_numpy(state).any() for state in states)


# The attention drops weights itself, or with a mask from the caller.
@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("kind", [lk.LuongAttention, lk.LocalAttention])
def test_an_empty_memory_has_no_weights_to_drop(kind, given):
    attention = kind(dropout=0.5)
    nothing = {"memory": np.zeros((2, 0, 4)), "training": True}
    masks = {"attention": np.ones((1, 2, 0), "float32")} if given else None
    decoder = lk.InputFeedingLSTM(4, attention=attention)
    vectors, alignments = decoder(
        QUERY, dropout_masks=masks, return_attention_scores=True, **nothing
    )
    assert np.isfinite(to_numpy(vectors)).all()
    assert tuple(alignments.shape) == (2, 3, 0)
    if given:
        masks = {"attention": masks["attention"][0]}
    vector, _ = decoder.cell(
        *(QUERY[:, 0], [QUERY[:, 0]] * 3), dropout_masks=masks, **nothing
    )
    assert np.isfinite(to_numpy(vector)).all()
    again, _ = decoder.cell(
        *(QUERY[:, 0], [QUERY[:, 0]] * 3),
        keys=attention.project_keys(nothing["memory"]),
        **nothing,
    )
    np.testing.assert_array_equal(again, vector)


# Variables instead of tensors.

VARIABLES = [keras.Variable]
if BACKEND == "tensorflow":
    import tensorflow as tf

    VARIABLES.append(tf.Variable)


@pytest.mark.parametrize("variable", VARIABLES)
@pytest.mark.parametrize("training", [False, True])
def test_variables_are_accepted_as_inputs(variable, training):
    def as_variable(x):
        # Torch has gradients of floats only.
        return variable(np.asarray(x), trainable=x.dtype != bool)

    query, memory = QUERY.astype("float32"), MEMORY.astype("float32")
    real, hidden = np.ones((2, 5), bool), query[:, 0]
    encoder, decoder = lk.Encoder(4), lk.InputFeedingLSTM(4, attention="dot")
    for layer in (lk.LuongAttention("dot"), lk.LocalAttention(half_width=1)):
        expected = layer(query, memory, value_mask=real)
        found = layer(
            as_variable(query),
            as_variable(memory),
            value_mask=as_variable(real),
        )
        np.testing.assert_array_equal(found, expected)
    expected, found = (
        decoder(
            convert(query),
            memory=encoder(convert(memory), training=training)[0],
            initial_state=[convert(hidden), convert(hidden)],
            memory_mask=convert(real),
            training=training,
        )
        for convert in (np.asarray, as_variable)
    )
    np.testing.assert_array_equal(found, expected)
    states = [hidden, hidden]
    expected, _ = decoder.cell(hidden, states, memory=memory)
    states = [as_variable(hidden), as_variable(hidden)]
    found, _ = decoder.cell(
        as_variable(hidden), states, memory=as_variable(memory)
    )
    np.testing.assert_array_equal(found, expected)


# Optional states, and arguments that hypotheses share.


@pytest.mark.parametrize(
    "kind", [lk.InputFeedingLSTMCell, lk.InputFeedingGRUCell]
)
def test_the_attentional_vector_may_be_left_out_of_the_states(kind):
    cell = kind(4)
    states = [random(2, 4, seed=i) for i in range(len(cell.state_size) - 1)]
    found, _ = cell(INPUTS[:, 0], states, memory=MEMORY)
    full = [*states, np.zeros((2, 4))]
    expected, _ = cell(INPUTS[:, 0], full, memory=MEMORY)
    np.testing.assert_array_equal(found, expected)


def test_hypotheses_share_the_position_and_the_dropout_mask():
    cell = lk.InputFeedingLSTMCell(
        4, attention=lk.LocalAttention("monotonic", half_width=1)
    )
    memory = random(2, 9, 4)
    rows = [random(2, 4, seed=i) for i in range(3)]
    drop = 2.0 * (random(2, 9, seed=7) > 0)

    def weights(inputs, states):
        return to_numpy(
            cell(
                inputs,
                states,
                memory=memory,
                position=np.array([1, 5]),
                dropout_masks={"attention": drop},
                return_attention_scores=True,
            )[2]
        )

    expected = weights(INPUTS[:, 0], rows)
    for width in (2, 3):
        beams = [np.repeat(x[:, None], width, 1) for x in rows]
        found = weights(np.repeat(INPUTS[:, :1], width, 1), beams)
        for hypothesis in range(width):
            np.testing.assert_allclose(
                found[:, hypothesis], expected, atol=1e-6
            )


def test_self_attention_uses_the_query_mask():
    embedded = keras.layers.Embedding(9, 4, mask_zero=True)(
        np.array([[3, 4, 0, 0]])
    )
    for layer in (lk.LuongAttention("dot"), lk.LocalAttention(half_width=1)):
        _, weights = layer(embedded, return_attention_scores=True)
        _, expected = layer(embedded, embedded, return_attention_scores=True)
        np.testing.assert_array_equal(weights, expected)
        assert not to_numpy(weights)[..., 2:].any()
        _, weights = layer(
            QUERY,
            query_mask=np.array([[True, True, False]] * 2),
            value_mask=None,
            return_attention_scores=True,
        )
        assert not to_numpy(weights)[..., 2:].any()


def test_clipped_states_have_the_compute_dtype():
    encoder = lk.Encoder(4, cell_clip=1.0, dtype="mixed_bfloat16")
    _, *states = encoder(INPUTS)
    assert {dtype_of(state) for state in states} == {"bfloat16"}


# Shapes, and the wrappers of Keras.


def test_output_shape_is_computed():
    for layer in (lk.LuongAttention(), lk.LocalAttention()):
        assert layer.compute_output_shape((2, 3, 4), (2, 5, 6)) == (2, 3, 6)


class Halves(lk.OutputProjection):
    """A projection whose call Keras cannot trace."""

    def call(self, vectors):
        return keras.ops.array(to_numpy(super().call(vectors))[..., ::2])

    def compute_output_shape(self, vectors_shape):
        return (*vectors_shape[:-1], self.vocabulary_size // 2)


def test_output_shape_of_a_subclass_serves_symbolic_calls():
    assert Halves(8)(keras.Input((3, 4))).shape == (None, 3, 4)


def test_symbolic_calls_take_all_tensors_in_order():
    x, memory = (keras.Input(batch_shape=y.shape) for y in (QUERY, MEMORY))
    mask = keras.Input(batch_shape=(2, 5), dtype="bool")
    steps = keras.Input(batch_shape=(2,), dtype="int32")
    local = lk.LocalAttention("monotonic")
    found = local(x[:, 0], memory, None, mask, None, steps)
    assert found.shape == (2, 4)
    cell = lk.InputFeedingLSTMCell(4, attention="local-m")
    states = [x[:, 0]] * 3
    _, last = cell(x[:, 0], states, memory, mask, None, steps)
    assert [state.shape for state in last] == [(2, 4)] * 3
    decoder = lk.InputFeedingLSTM(4)
    assert decoder(x, memory, None, None, None, mask).shape == (2, 3, 4)
    assert lk.Encoder(4)(memory, mask)[0].shape == (2, 5, 4)


def test_self_attention_runs_in_time_distributed():
    attention = lk.LuongAttention("general")
    videos = random(2, 3, 5, 4).astype("float32")
    found = keras.layers.TimeDistributed(attention)(videos)
    for i in range(3):
        np.testing.assert_allclose(
            found[:, i], attention(videos[:, i], videos[:, i]), atol=1e-6
        )
    rows = keras.layers.TimeDistributed(lk.LocalAttention(half_width=1))(videos)
    assert tuple(rows.shape) == videos.shape


def test_encoder_call_changes_no_attribute():
    encoder = lk.Encoder(4)
    encoder(INPUTS)
    before = {
        name: value
        for layer in encoder.stacks[0]
        for name, value in vars(layer).items()
        if name != "_called"  # set by Keras when it runs the layer
    }
    encoder(INPUTS, training=True)
    encoder(INPUTS)
    (layer,) = encoder.stacks[0]
    assert all(vars(layer)[name] is value for name, value in before.items())


# float64.

FLOAT64 = """
import keras, numpy as np
import luong_keras as lk
if keras.backend.backend() == "jax":
    import jax
    jax.config.update("jax_enable_x64", True)
try:
    lk.InputFeedingLSTM(8, dtype="float64")
except ValueError as error:
    assert "luong_keras.enable_float64()" in str(error), error
else:
    raise SystemExit("not refused")
lk.enable_float64()
decoder = lk.InputFeedingLSTM(8, dtype="float64")
for training in (True, False):
    found = decoder(
        np.ones((2, 3, 5)), memory=np.ones((2, 6, 4)), training=training
    )
    assert keras.backend.standardize_dtype(found.dtype) == "float64"
"""


@pytest.mark.skipif(
    BACKEND == "tensorflow", reason="TensorFlow always computes in float64"
)
def test_float64_is_refused_until_enabled():
    run_program(FLOAT64)


# Habits of users of Keras or TensorFlow Addons.

FOREIGN_CALLS = {
    # States.
    "states of another width": (
        lambda x, m: decode(initial_state=[np.zeros((2, 6))] * 3),
        r"`initial_state\[0\]`.*Expected: \(2, 4\).*\(2, 6\).*`Bridge",
    ),
    "states of another batch": (
        lambda x, m: decode(initial_state=[np.zeros((3, 4))] * 3),
        r"Expected: \(2, 4\). Received: \(3, 4\)",
    ),
    "states of a cell": (
        lambda x, m: lk.InputFeedingGRUCell(4)(
            x[:, 0], [np.zeros((2, 6))] * 2, memory=m
        ),
        r"`states\[0\]`.*Received: \(2, 6\)",
    ),
    "one state to a bridge": (
        lambda x, m: lk.Bridge(4, 2)(x[:, 0]),
        r"`states` must be a list",
    ),
    # The memory.
    "an encoder's tuple": (
        lambda x, m: lk.InputFeedingLSTM(4)(x, memory=lk.Encoder(4)(m)),
        r"`memory` must be one tensor.*tuple of 3.*memory, \*states",
    ),
    "an encoder's tuple as value": (
        lambda x, m: lk.LuongAttention()(x, lk.Encoder(4)(m)),
        r"`value` must be one tensor.*tuple of 3",
    ),
    "a last state as memory": (
        lambda x, m: lk.InputFeedingLSTM(4)(x, memory=m[:, 0]),
        r"`memory`.*\(B, S, M\).*`return_sequences=True`",
    ),
    "a last state as value": (
        lambda x, m: lk.LuongAttention()(x, m[:, 0]),
        "value.shape=.*`return_sequences=True`",
    ),
    "ids as memory": (
        lambda x, m: lk.InputFeedingLSTM(4)(x, memory=IDS[..., None]),
        "`memory` must hold vectors of floats.*int32.*astype",
    ),
    # Names.
    "stateful": (
        lambda x, m: lk.InputFeedingLSTM(4, stateful=True),
        "no argument `stateful`.*`initial_state=`",
    ),
    "states to an encoder": (
        lambda x, m: lk.Encoder(4)(x, initial_state=[m[:, 0]]),
        "no argument `initial_state`.*starts every call from zeros",
    ),
    "recurrent dropout": (
        lambda x, m: lk.BahdanauGRU(4, recurrent_dropout=0.1),
        "no argument `recurrent_dropout`.*`dropout=`",
    ),
    "regularizer": (
        lambda x, m: lk.Encoder(4, kernel_regularizer="l2"),
        "no argument `kernel_regularizer`.*`weight_decay`",
    ),
    "constants": (
        lambda x, m: lk.InputFeedingLSTM(4)(x, constants=m),
        "no argument `constants`.*`memory=`",
    ),
    "states at the call": (
        lambda x, m: lk.InputFeedingLSTM(4)(x, memory=m, return_state=True),
        "no argument `return_state`.*constructor",
    ),
    "lengths of the memory": (
        lambda x, m: lk.InputFeedingLSTM(4)(
            x, memory=m, memory_sequence_length=[5, 2]
        ),
        "no argument `memory_sequence_length`.*arange.*`memory_mask=`",
    ),
    "a mask of attention": (
        lambda x, m: lk.LuongAttention()(x, m, mask=np.ones((2, 5), bool)),
        "no argument `mask`.*`value_mask=`",
    ),
    "an attention mask": (
        lambda x, m: lk.LocalAttention()(x, m, attention_mask=IDS),
        "no argument `attention_mask`.*`value_mask=`",
    ),
    "a causal mask": (
        lambda x, m: lk.LuongAttention()(x, m, use_causal_mask=True),
        "no argument `use_causal_mask`.*keras.layers.Attention",
    ),
    "heads": (
        lambda x, m: lk.LuongAttention(num_heads=8),
        "no argument `num_heads`.*MultiHeadAttention",
    ),
    "the paper's D": (
        lambda x, m: lk.LocalAttention(D=4),
        "no argument `D`.*`half_width`",
    ),
    "the paper's local-p": (
        lambda x, m: lk.LocalAttention("local-p"),
        "Received: alignment='local-p'.*is 'predictive'",
    ),
    "local attention as a score": (
        lambda x, m: lk.LuongAttention("local-m"),
        r"score_mode='local-m'\. `LocalAttention\('predictive'\)`",
    ),
    "a score as an alignment": (
        lambda x, m: lk.LocalAttention("general"),
        "alignment='general'.*a score is `score_mode=`",
    ),
    "a window of global attention": (
        lambda x, m: lk.LuongAttention("general", half_width=3),
        "no argument `half_width`. `LocalAttention` has it",
    ),
    "lengths in place of a mask": (
        lambda x, m: lk.LuongAttention()(x, m, [5, 3]),
        "`query_mask` must be one tensor.*arange.S. < lengths",
    ),
    "a decoder without a width": (
        lambda x, m: lk.InputFeedingLSTM(None),
        "`units` must be an integer.*units=None",
    ),
    "an encoder without a width": (
        lambda x, m: lk.Encoder(None),
        "`units` must be an integer.*units=None",
    ),
    "a window without a width": (
        lambda x, m: lk.LocalAttention(half_width=None),
        "`half_width` must be an integer.*half_width=None",
    ),
    "a scale": (
        lambda x, m: lk.LuongAttention(scale=True),
        "no argument `scale`.*`use_scale`",
    ),
    "a key": (
        lambda x, m: lk.LuongAttention()(x, m, key=m),
        "no argument `key`.*project_keys",
    ),
    "a mechanism": (
        lambda x, m: lk.InputFeedingLSTM(4, attention_mechanism="dot"),
        "no argument `attention_mechanism`.*`attention`",
    ),
    "units and memory": (
        lambda x, m: lk.LuongAttention(8, m),
        r"`score_mode`.*score_mode=8.*\(query, memory\)",
    ),
    "memory by name": (
        lambda x, m: lk.LuongAttention("dot", memory=m),
        "no argument `memory`.*call",
    ),
    "units and memory, additive": (
        lambda x, m: lk.BahdanauAttention(8, m),
        r"`normalize` must be.*\(query, memory\)",
    ),
    # Values that are no tensors.
    "a list as memory": (
        lambda x, m: lk.InputFeedingLSTM(4)(x, memory=MEMORY.tolist()),
        "`memory` must be one tensor.*list of 2.*numpy.asarray",
    ),
    "a list as inputs": (
        lambda x, m: lk.Encoder(4)(MEMORY.tolist()),
        "`inputs` must be one tensor",
    ),
    "a number as memory": (
        lambda x, m: lk.InputFeedingLSTM(4)(x, memory=3),
        "`memory` must be a tensor",
    ),
    "rows of different lengths": (
        lambda x, m: lk.LuongAttention()(
            x, np.array([np.ones((1, 4)), np.ones((2, 4))], object)
        ),
        "`value` must be a dense tensor.*object.*pad_sequences",
    ),
    "ids to project": (
        lambda x, m: lk.OutputProjection(4)(IDS),
        "`vectors` must hold vectors of floats",
    ),
    # Masks.
    "a mask of integers": (
        lambda x, m: lk.LuongAttention()(x, m, value_mask=np.ones((2, 5), int)),
        "`value_mask` must be boolean.*int64.*`mask > 0`",
    ),
    "lengths as a mask": (
        lambda x, m: lk.LuongAttention()(x, m, value_mask=np.array([5, 2])),
        r"`value_mask` must be boolean.*shape \(2,\).*lengths",
    ),
    "a mask for every query": (
        lambda x, m: lk.LuongAttention()(
            x, m, value_mask=np.ones((2, 3, 5), bool)
        ),
        r"Expected: shape \(2, 5\). Received: \(2, 3, 5\)",
    ),
    "a list as mask": (
        lambda x, m: decode(memory_mask=[[True] * 5] * 2),
        "`memory_mask` must be one tensor",
    ),
    "a flag as mask": (
        lambda x, m: decode(mask=True),
        "`mask` must be a boolean tensor",
    ),
    # Single steps without a position.
    "one step of a cell": (
        lambda x, m: lk.InputFeedingLSTMCell(4, attention="local-m")(
            x[:, 0], [np.zeros((2, 4))] * 3, memory=m
        ),
        "`position=t`.*Received",
    ),
    "hypotheses of a cell": (
        lambda x, m: lk.InputFeedingLSTMCell(4, attention="local-m")(
            x, [np.zeros((2, 3, 4))] * 3, memory=m
        ),
        "`position=t`.*Received",
    ),
}


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize(
    "call, message", FOREIGN_CALLS.values(), ids=list(FOREIGN_CALLS)
)
def test_habits_of_other_libraries_are_explained(call, message, symbolic):
    x, m = random(2, 3, 4).astype("float32"), MEMORY.astype("float32")
    if symbolic:
        x, m = (keras.Input(batch_shape=array.shape) for array in (x, m))
    with pytest.raises(ValueError, match=f"(?s){message}"):
        call(x, m)


@pytest.mark.parametrize(
    "name, meant",
    [
        ("Dot", "'dot'"),
        ("scaled-dot", "'scaled_dot'"),
        ("multiplicative", "'general'"),
        ("additive", "'concat'"),
        ("genral", "general"),
    ],
)
def test_other_score_names_suggest_the_right_one(name, meant):
    for call in (
        lambda: lk.LuongAttention(name),
        lambda: lk.LocalAttention(score_mode=name),
        lambda: lk.InputFeedingLSTM(4, attention=name),
    ):
        with pytest.raises(ValueError, match=f"Received: .*{name}.*{meant}"):
            call()


def test_function_as_score_is_refused():
    with pytest.raises(ValueError, match=r"class Mine\(Score\)"):
        lk.LuongAttention(lambda query, keys: query)


@pytest.mark.parametrize("symbolic", [False, True])
def test_changed_widths_are_refused(symbolic):
    layer = lk.InputFeedingLSTM(4)
    layer(INPUTS, memory=MEMORY)
    wider = np.ones((2, 3, 9)), np.ones((2, 5, 7))
    if symbolic:
        wider = tuple(keras.Input(batch_shape=x.shape) for x in wider)
    with pytest.raises(ValueError, match=r"`inputs`.*\(..., 6\).*\(2, 3, 9\)"):
        layer(wider[0], memory=MEMORY)
    with pytest.raises(ValueError, match=r"`memory`.*\(..., 4\).*\(2, 5, 7\)"):
        layer(INPUTS, memory=wider[1])


ONLY_QUERY = ("OutputProjection", "WordLosses", "Bridge")
# A layer without weights to read the first widths from.
WEIGHTLESS = {
    "dot": (lambda dtype: lk.LuongAttention("dot"), LAYERS["LuongAttention"][1])
}


@pytest.mark.slow_after_first
@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("name", [*LAYERS, *WEIGHTLESS])
def test_every_layer_refuses_changed_widths(name, symbolic):
    make, apply = {**LAYERS, **WEIGHTLESS}[name]
    layer = make("float32")
    right = [random(2, n, 4).astype("float32") for n in (3, 5)]
    apply(layer, *right)
    reads = [name.split()[0] != "Encoder", name.split()[0] not in ONLY_QUERY]
    for read in ([True, False], [False, True], [True, True]):
        wider = [
            random(2, n, 6 if other else 4).astype("float32")
            for n, other in zip((3, 5), read, strict=True)
        ]
        if symbolic:
            wider = [keras.Input(batch_shape=x.shape) for x in wider]
        if not any(a and b for a, b in zip(read, reads, strict=True)):
            apply(layer, *wider)
            continue
        with pytest.raises(
            ValueError, match=r"(?s)`.*Expected: \(.*, 4\)\..*\(2, (\d, )?6\)"
        ):
            apply(layer, *wider)
    apply(layer, *right)


def test_wrapper_of_a_built_layer_refuses_other_widths():
    cell = lk.InputFeedingGRUCell(4)
    lk.AttentionRNN(cell)(QUERY, memory=MEMORY)
    projection = lk.OutputProjection(7)
    projection(QUERY)
    for call in (
        lambda: lk.AttentionRNN(cell)(INPUTS, memory=MEMORY),
        lambda: lk.WordLosses(projection)(INPUTS, IDS),
    ):
        with pytest.raises(ValueError, match=r"\(..., 4\).*\(2, 3, 6\)"):
            call()


@pytest.mark.tensorflow
def test_ragged_tensors_are_refused():
    import tensorflow as tf

    ragged = tf.RaggedTensor.from_tensor(MEMORY, lengths=[5, 2])
    for call in (
        lambda x: lk.InputFeedingLSTM(4)(INPUTS, memory=x),
        lambda x: lk.LuongAttention()(QUERY, x),
        lambda x: lk.Encoder(4)(x),
    ):
        with pytest.raises(ValueError, match="dense tensor.*to_tensor"):
            call(ragged)


@pytest.mark.tensorflow
def test_tensors_of_unknown_rank_are_refused():
    import tensorflow as tf

    @tf.function(input_signature=[tf.TensorSpec(None)])
    def attend(memory):
        return lk.LuongAttention()(QUERY, memory)

    with pytest.raises(ValueError, match="`value`.*known rank"):
        attend(MEMORY)


def test_a_refused_call_builds_nothing():
    layer = lk.InputFeedingLSTM(4)
    with pytest.raises(ValueError, match="`memory`"):
        layer(INPUTS, memory=MEMORY[:, 0])
    assert not layer.built
    assert layer(INPUTS, memory=MEMORY).shape == (2, 3, 4)


def test_scaled_symbolic_tensors_are_dense():
    ids = keras.Input((3,), dtype="int32")
    embedded = keras.layers.Embedding(9, 4, mask_zero=True)(ids)
    memory, *states = lk.Encoder(4)(embedded * 2.0)
    vectors = lk.InputFeedingLSTM(4)(
        2.0 * embedded, memory=memory * 0.5, initial_state=[states[0] * 3.0] * 2
    )
    context = lk.LuongAttention("dot")(vectors * 2.0, memory * 2.0)
    model = keras.Model(ids, lk.OutputProjection(9)(context * 2.0))
    assert tuple(model(IDS).shape) == (2, 3, 9)
