"""Errors for wrong use of layers, and results of empty inputs."""

import json

import keras
import numpy as np
import pytest

import luong_keras as lk
from luong_keras.layers.attention.score import Score
from luong_keras.layers.attention.scores import DotScore
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


def step(attention, inputs=QUERY[:, 0], **options):
    cell = lk.InputFeedingLSTMCell(4, attention=attention)
    return cell(inputs, [np.zeros((*inputs.shape[:-1], 4))] * 3, **options)


def refused(message):
    errors = (ValueError, NotImplementedError)
    return pytest.raises(errors, match=f"(?s){message}")


def test_wrong_masks_are_refused():
    with refused(r"`value_mask`.*shape \(2, 5\). Received: \(2, 4\)"):
        attend(value_mask=SHORT)
    with refused(r"`query_mask`.*\(2, 3\). Received: \(2, 4\)"):
        attend(query_mask=SHORT)
    with refused("`value_mask`.*Received"):
        lk.LocalAttention(half_width=1)(QUERY, MEMORY, value_mask=SHORT)
    with refused("`memory_mask`.*Received"):
        decode(memory_mask=SHORT)
    with refused("`mask`.*Received"):
        lk.Encoder(4)(INPUTS, mask=SHORT)
    with refused("`value_mask` must be boolean.*float.*`mask > -1`"):
        attend(value_mask=ADDITIVE)
    with refused("`memory_mask` must be boolean"):
        decode(memory_mask=ADDITIVE)
    with refused("`memory_mask` must be one tensor"):
        decode(memory_mask=[[True] * 5] * 2)
    with refused("`mask` must be a boolean tensor"):
        decode(mask=True)
    with refused("a cell reads one word per call"):
        step("general", query_mask=IDS > 0)


def test_wrong_tensors_are_refused():
    with refused("same batch size. Received: query of 2, value of 1"):
        attend(value=MEMORY[:1])
    with refused("same batch size"):
        decode(memory=MEMORY[:1])
    with refused("`query` must hold vectors of floats.*int32.*Embed"):
        attend(query=np.ones((2, 3, 4), "int32"))
    with refused(r"Expected: vectors \(B, T, E\)"):
        lk.InputFeedingLSTM(4)(IDS, memory=MEMORY)
    with refused(r"Expected: vectors \(B, E\) or \(B, K, E\)"):
        step(None, IDS[0, :1])
    with refused("`vectors` must hold vectors of floats"):
        lk.OutputProjection(4)(IDS)
    with refused("`inputs` must be one tensor"):
        lk.Encoder(4)(MEMORY.tolist())
    with refused("`keys` must be `project_keys"):
        attend(keys=MEMORY[:, :4])


def test_a_memory_belongs_to_an_attention_layer():
    without = lk.InputFeedingLSTM(4, attention=None)
    with refused("no attention and cannot read a memory"):
        decode(without)
    with refused("something to attend to.*attention=None"):
        lk.InputFeedingLSTM(4)(INPUTS)
    with refused("cannot read a memory"):
        step(None, memory=MEMORY)
    with refused("Received: `memory_mask`, with attention=None"):
        without(INPUTS, memory_mask=SHORT)
    with refused("Received: `keys`, with attention=None"):
        step(None, keys=MEMORY)
    with refused("needs a cell with an attention layer"):
        step(None, keras.Input((4,), 2), return_attention_scores=True)


def test_wrong_states_are_refused():
    expected = "`initial_state` must hold 3 tensors.*"
    with refused(expected + r"one tensor of shape \(3, 4\)"):
        decode(initial_state=np.zeros((3, 4)))
    with refused(expected + "Received: 5"):
        decode(initial_state=5)
    with refused(expected + "Received: {'h': 5}"):
        decode(initial_state={"h": 5})
    with refused(expected + "Received: 1 tensors"):
        decode(initial_state=[np.zeros((2, 4))])
    with refused(r"`initial_state\[0\]`.*\(2, 4\).*\(2, 6\).*`Bridge"):
        decode(initial_state=[np.zeros((2, 6))] * 3)
    with refused(r"Expected: \(2, 4\). Received: \(3, 4\)"):
        decode(initial_state=[np.zeros((3, 4))] * 3)


def test_wrong_dropout_masks_are_refused():
    names = r"\['inputs', 'feeding', 'attention', 'outputs'\]"
    with refused(names + r".*\['input'\]"):
        decode(dropout_masks={"input": np.zeros((3, 2, 6))})
    cell = lk.InputFeedingLSTMCell(4, input_feeding=False)
    masks = {"feeding": np.zeros((2, 4))}
    with refused(r"some of \['inputs', 'attention'\].*\['feeding'\]"):
        cell(QUERY[:, 0], [QUERY[:, 0]] * 3, memory=MEMORY, dropout_masks=masks)
    with refused(r"nothing reads.*'inputs', 'outputs'.*masks\['input'\]"):
        lk.Encoder(4)(INPUTS, dropout_masks={"input": INPUTS})


def test_wrong_positions_are_refused():
    with refused("`position` must be an integer.*Received: position=1.9"):
        attend_at(1.9)
    with refused("`position` must be an integer and at least 0.*-3"):
        attend_at(-3)
    with refused("`position` must be an integer.*0.5"):
        attend_at(np.array([0.5, 1.0]))
    with refused("`position` counts from 0.*-1"):
        attend_at(np.array([-1, 1]))
    local = lk.LocalAttention("monotonic", half_width=1)
    with refused(r"broadcast to \(B, T\).*`position\[:, None\]`.*\(2,\)"):
        local(QUERY, MEMORY, position=np.array([3, 5]))
    with refused(r"broadcast to \(B, T\).*position.shape=\(3,\)"):
        attend_at(np.array([3, 5, 7]))
    with refused("`position` must be an integer.*0.5"):
        step("local-m", memory=MEMORY, position=0.5)
    with refused(r"`position` must be one decoder step.*\(\) or \(2,\)"):
        step("local-m", memory=MEMORY, position=np.array([0, 1, 2]))


def test_wrong_arguments_are_refused():
    with refused("`half_width` must be an integer.*half_width=2.5"):
        lk.LocalAttention(half_width=2.5)
    with refused("`half_width` must be an integer.*half_width=None"):
        lk.LocalAttention(half_width=None)
    with refused("`units` must be an integer.*Received: units=4.5"):
        lk.InputFeedingLSTM(4.5)
    with refused("`units` must be an integer.*units=None"):
        lk.InputFeedingLSTM(None)
    with refused("`units` must be an integer.*units=None"):
        lk.Encoder(None)
    with refused(r"one direction.*`Encoder\(bidirectional=True\)`"):
        keras.layers.Bidirectional(lk.InputFeedingLSTM(4))
    with refused("needs even `units`.*Received: units=9"):
        lk.Encoder(9, bidirectional=True)
    with refused("`projection` must be a layer of class OutputProjection"):
        lk.WordLosses(keras.layers.Dense(9))
    with refused("`embedding` must be a layer of class Embedding, or None"):
        lk.OutputProjection(9, embedding=np.ones((9, 4)))


def test_wrong_attentions_and_scores_are_refused():
    with refused('`attention` must be.*Received: .*Pass "dot"'):
        lk.InputFeedingLSTM(4, attention=keras.layers.Attention())
    with refused(r"Pass an object, `LocalAttention\(\)`"):
        lk.InputFeedingLSTM(4, attention=lk.LocalAttention)
    with refused("Derive yours from `LuongAttention`"):
        lk.InputFeedingLSTM(4, attention=keras.layers.Dense(4))
    with refused(r"Pass `LuongAttention\(score\)`"):
        lk.InputFeedingLSTM(4, attention=DotScore())
    with refused("one of the names.*'local-p'.*attention='genral'"):
        lk.InputFeedingLSTM(4, attention="genral")
    with refused(r"Write `DotScore\(\)`"):
        lk.LuongAttention(DotScore)
    with refused("`mask_location` belongs only to `score_mode='location'`"):
        lk.LuongAttention("dot", mask_location=False)
    with refused("`units` belongs only to `score_mode='concat'`.*DotScore"):
        lk.LuongAttention(DotScore(), units=3)
    with refused(r"must define `__call__\(query, keys\)`"):
        attention = lk.LuongAttention(Score())
        attention(QUERY, MEMORY)


def test_symbolic_calls_are_checked():
    query, memory = keras.Input((3, 4)), keras.Input((5, 4))
    short = keras.Input((4,), dtype="bool")
    with pytest.raises(ValueError, match="`value_mask`"):
        lk.LuongAttention()(query, memory, value_mask=short)
    with pytest.raises(ValueError, match="`memory_mask`"):
        lk.InputFeedingLSTM(4)(query, memory=memory, memory_mask=short)
    with pytest.raises(ValueError, match="cannot read a memory"):
        lk.InputFeedingLSTM(4, attention=None)(query, memory=memory)


def test_an_unknown_argument_is_a_type_error():
    for layer, sizes, typo in (
        (lk.LocalAttention, [], "half_widht"),
        (lk.LocalAttention, [], "max_length"),
        (lk.LocalAttention, [], "mask_location"),
        (lk.InputFeedingLSTM, [4], "droput"),
        (lk.InputFeedingGRUCell, [4], "cell_clip"),
        (lk.Encoder, [4], "layers"),
        (lk.OutputProjection, [4], "bias"),
    ):
        with pytest.raises(TypeError, match="unexpected keyword argument"):
            layer(*sizes, **{typo: 1})


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
    message = r"must be equal.*\(2, \w+, 4\).*\(2, 3, 6\).*'general'"
    with pytest.raises(ValueError, match=message):
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


class InnerLayer(DotScore):
    """A score with a Keras layer, which no attention layer would save."""

    def __init__(self):
        self.dense = keras.layers.Dense(4)


@pytest.mark.parametrize("kind", [lk.LuongAttention, lk.LocalAttention])
def test_a_score_with_a_keras_layer_is_refused(kind):
    layer = kind(score_mode=InnerLayer())
    message = f"'dense' of InnerLayer, a Dense.*subclass of `{kind.__name__}`"
    with pytest.raises(ValueError, match=message):
        layer(QUERY, MEMORY)
    with pytest.raises(ValueError, match=message):
        lk.InputFeedingLSTM(4, attention=layer)(QUERY, memory=MEMORY)


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


@pytest.fixture(params=["array", "symbolic"])
def tensors(request):
    arrays = [random(2, 3, 4).astype("float32"), MEMORY.astype("float32")]
    if request.param == "array":
        return arrays
    return [keras.Input(batch_shape=array.shape) for array in arrays]


def test_other_memories_and_states_are_explained(tensors):
    x, m = tensors
    decoder = lk.InputFeedingLSTM(4)
    with refused(r"`states\[0\]`.*Received: \(2, 6\)"):
        lk.InputFeedingGRUCell(4)(x[:, 0], [np.zeros((2, 6))] * 2, memory=m)
    with refused("`states` must be a list"):
        lk.Bridge(4, 2)(x[:, 0])
    with refused(r"`memory` must be one tensor.*tuple of 3.*memory, \*states"):
        decoder(x, memory=lk.Encoder(4)(m))
    with refused("`value` must be one tensor.*tuple of 3"):
        lk.LuongAttention()(x, lk.Encoder(4)(m))
    with refused(r"`memory`.*\(B, S, M\).*`return_sequences=True`"):
        decoder(x, memory=m[:, 0])
    with refused("value.shape=.*`return_sequences=True`"):
        lk.LuongAttention()(x, m[:, 0])
    with refused("`memory` must hold vectors of floats.*int32.*astype"):
        decoder(x, memory=IDS[..., None])
    with refused("`memory` must be one tensor.*list of 2.*numpy.asarray"):
        decoder(x, memory=MEMORY.tolist())
    with refused("`memory` must be a tensor"):
        decoder(x, memory=3)
    rows = np.array([np.ones((1, 4)), np.ones((2, 4))], object)
    with refused("`value` must be a dense tensor.*object.*pad_sequences"):
        lk.LuongAttention()(x, rows)


def test_other_names_of_call_arguments_are_explained(tensors):
    x, m = tensors
    attention, decoder = lk.LuongAttention(), lk.InputFeedingLSTM(4)
    with refused("no argument `initial_state`.*every call from zeros"):
        lk.Encoder(4)(x, initial_state=[m[:, 0]])
    with refused("no argument `constants`.*`memory=`"):
        decoder(x, constants=m)
    with refused("no argument `return_state`.*constructor"):
        decoder(x, memory=m, return_state=True)
    with refused("no argument `memory_sequence_length`.*arange.*`memory_mask="):
        decoder(x, memory=m, memory_sequence_length=[5, 2])
    with refused("no argument `mask`.*`value_mask=`"):
        attention(x, m, mask=np.ones((2, 5), bool))
    with refused("no argument `attention_mask`.*`value_mask=`"):
        lk.LocalAttention()(x, m, attention_mask=IDS)
    with refused("no argument `use_causal_mask`.*keras.layers.Attention"):
        attention(x, m, use_causal_mask=True)
    with refused("no argument `key`.*project_keys"):
        attention(x, m, key=m)


def test_other_names_of_constructor_arguments_are_explained():
    with refused("no argument `stateful`.*`initial_state=`"):
        lk.InputFeedingLSTM(4, stateful=True)
    with refused("no argument `recurrent_dropout`.*`dropout=`"):
        lk.BahdanauGRU(4, recurrent_dropout=0.1)
    with refused("no argument `kernel_regularizer`.*`weight_decay`"):
        lk.Encoder(4, kernel_regularizer="l2")
    with refused("no argument `num_heads`.*MultiHeadAttention"):
        lk.LuongAttention(num_heads=8)
    with refused("no argument `D`.*`half_width`"):
        lk.LocalAttention(D=4)
    with refused("Received: alignment='local-p'.*is 'predictive'"):
        lk.LocalAttention("local-p")
    with refused(r"score_mode='local-m'\. `LocalAttention\('predictive'\)`"):
        lk.LuongAttention("local-m")
    with refused("alignment='general'.*a score is `score_mode=`"):
        lk.LocalAttention("general")
    with refused("no argument `half_width`. `LocalAttention` has it"):
        lk.LuongAttention("general", half_width=3)
    with refused("no argument `scale`.*`use_scale`"):
        lk.LuongAttention(scale=True)
    with refused("no argument `attention_mechanism`.*`attention`"):
        lk.InputFeedingLSTM(4, attention_mechanism="dot")
    with refused(r"`score_mode`.*score_mode=8.*\(query, memory\)"):
        lk.LuongAttention(8, MEMORY)
    with refused("no argument `memory`.*call"):
        lk.LuongAttention("dot", memory=MEMORY)
    with refused(r"`normalize` must be.*\(query, memory\)"):
        lk.BahdanauAttention(8, MEMORY)


def test_other_masks_are_explained(tensors):
    x, m = tensors
    attention = lk.LuongAttention()
    with refused("`value_mask` must be boolean.*int64.*`mask > 0`"):
        attention(x, m, value_mask=np.ones((2, 5), int))
    with refused(r"`value_mask` must be boolean.*shape \(2,\).*lengths"):
        attention(x, m, value_mask=np.array([5, 2]))
    with refused(r"Expected: shape \(2, 5\). Received: \(2, 3, 5\)"):
        attention(x, m, value_mask=np.ones((2, 3, 5), bool))
    with refused("`query_mask` must be one tensor.*arange.S. < lengths"):
        attention(x, m, [5, 3])


def test_one_step_needs_a_position(tensors):
    x, m = tensors
    with refused("`position=t`.*Received"):
        step("local-m", x[:, 0], memory=m)
    with refused("`position=t`.*Received"):
        step("local-m", x, memory=m)
    symbolic = keras.Input((4,)), keras.Input((5, 4))
    for query, memory in ((x[:, 0], m), symbolic):
        with refused("position=t.*Received.*position=None"):
            lk.LocalAttention("monotonic")(query, memory)
    found = lk.LocalAttention("predictive")(x[:, 0], m)
    assert tuple(found.shape) == (2, 4)


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
