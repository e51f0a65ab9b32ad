"""What layers refuse, and what they make of nothing at all."""

import subprocess
import sys

import keras
import numpy as np
import pytest

import luong_keras as lk
from luong_keras.layers.attention.score import Score
from luong_keras.layers.attention.scores import DotScore
from tests.layer_checks import BACKEND, dtype_of, random, to_numpy

# Nothing of it depends on the backend.
pytestmark = pytest.mark.slow_on_jax

QUERY, MEMORY = random(2, 3, 4), random(2, 5, 4, seed=1)
INPUTS = random(2, 3, 6, seed=2)
IDS = np.ones((2, 3), "int32")
SHORT = np.ones((2, 4), bool)
ADDITIVE = np.where(np.ones((2, 5)), 0.0, -1e9).astype("float32")


def attend(**options):
    arguments = {"query": QUERY, "value": MEMORY, **options}
    return lk.LuongAttention("dot")(**arguments)


def look(**options):
    arguments = {"query": QUERY, "value": MEMORY, **options}
    return lk.LocalAttention(half_width=1)(**arguments)


def decode(layer=None, **options):
    layer = layer or lk.InputFeedingLSTM(4)
    return layer(INPUTS, **{"memory": MEMORY, **options})


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
        lambda: look(value_mask=SHORT),
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
        r"reads vectors \(B, T, E\)",
    ),
    "a memory for no attention": (
        lambda: decode(lk.InputFeedingLSTM(4, attention=None)),
        "no attention and cannot read a memory",
    ),
    "no memory for an attention": (
        lambda: lk.InputFeedingLSTM(4)(INPUTS),
        "something to attend to.*attention=None",
    ),
    "a memory for a cell without attention": (
        lambda: lk.InputFeedingLSTMCell(4, attention=None)(
            INPUTS[:, 0], [np.zeros((2, 4))] * 3, memory=MEMORY
        ),
        "cannot read a memory",
    ),
    "one tensor as states": (
        lambda: decode(initial_state=np.zeros((3, 4))),
        r"`initial_state` must hold 3 tensors.*one tensor of shape \(3, 4\)",
    ),
    "too few states": (
        lambda: decode(initial_state=[np.zeros((2, 4))]),
        "`initial_state` must hold 3 tensors.*Received: 1 tensors",
    ),
    "keys of another memory": (
        lambda: attend(keys=MEMORY[:, :4]),
        "`keys` must be `project_keys",
    ),
    # Arguments.
    "a window of two and a half": (
        lambda: lk.LocalAttention(half_width=2.5),
        "`half_width` must be an integer.*Received: half_width=2.5",
    ),
    "a window in words": (
        lambda: lk.LocalAttention(half_width="5"),
        "`half_width` must be an integer.*Received: half_width='5'",
    ),
    "half a unit": (
        lambda: lk.InputFeedingLSTM(4.5),
        "`units` must be an integer.*Received: units=4.5",
    ),
    "an attention of Keras": (
        lambda: lk.InputFeedingLSTM(4, attention=keras.layers.Attention()),
        '`attention` must be.*Received: .*Pass "dot"',
    ),
    "a class": (
        lambda: lk.InputFeedingLSTM(4, attention=lk.LocalAttention),
        r"Pass an object, `LocalAttention\(\)`",
    ),
    "another layer": (
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
    "an unknown score": (
        lambda: lk.LuongAttention("bilinear"),
        "`score_mode` must be one of.*Received: score_mode='bilinear'",
    ),
    "options of another score": (
        lambda: lk.LuongAttention("dot", mask_location=False),
        "`mask_location` belongs to `score_mode='location'`",
    ),
    "options beside a score of one's own": (
        lambda: lk.LuongAttention(DotScore(), units=3),
        "`units` belongs to `score_mode='concat'`.*DotScore",
    ),
    "no attention where it is needed": (
        lambda: lk.BahdanauLSTM(4, attention=None),
        'Pass `attention="bahdanau"`',
    ),
    "both directions": (
        lambda: keras.layers.Bidirectional(lk.InputFeedingLSTM(4)),
        r"one direction.*`Encoder\(bidirectional=True\)`",
    ),
    "odd units for two directions": (
        lambda: lk.Encoder(9, bidirectional=True),
        "needs even `units`.*Received: units=9",
    ),
    "a score without a formula": (
        lambda: lk.LuongAttention(Score())(QUERY, MEMORY),
        r"must define `__call__\(query, keys\)`",
    ),
}


@pytest.mark.parametrize("call, message", WRONG.values(), ids=list(WRONG))
def test_a_wrong_call_is_told(call, message):
    with pytest.raises((ValueError, NotImplementedError), match=message):
        call()


def test_a_symbolic_call_is_checked_too():
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


def test_the_second_argument_is_the_height():
    assert lk.InputFeedingLSTMCell(4, 2).num_layers == 2
    assert lk.InputFeedingLSTM(4, 2).cell.num_layers == 2
    assert lk.InputFeedingGRU(4, 3).cell.num_layers == 3
    assert lk.BahdanauLSTM(4, 2).cell.num_layers == 2


def test_an_attention_may_be_a_name():
    def of(name):
        return lk.InputFeedingLSTM(4, attention=name).cell.attention

    assert type(of("concat")) is lk.LuongAttention
    assert of("concat").score_mode == "concat"
    assert of("local-m").alignment == "monotonic"
    assert of("local-p").alignment == "predictive"
    assert type(of("bahdanau")) is lk.BahdanauAttention
    assert of(None) is None
    default = lk.InputFeedingLSTM(4).cell.attention
    assert default.score_mode == "general"
    assert type(lk.BahdanauGRU(4).cell.attention) is lk.BahdanauAttention
    half = lk.InputFeedingLSTM(4, attention="dot", dtype="mixed_bfloat16")
    assert half.cell.attention.compute_dtype == "bfloat16"


def test_no_attention_stays_none():
    layer = lk.InputFeedingLSTM(4, attention=None)
    again = lk.InputFeedingLSTM.from_config(layer.get_config())
    assert again.cell.attention is None
    cell = lk.InputFeedingLSTMCell(4, attention=None)
    assert type(cell).from_config(cell.get_config()).attention is None


def test_a_score_belongs_to_one_layer():
    score = DotScore()
    lk.LuongAttention(score)(QUERY, MEMORY)
    with pytest.raises(ValueError, match="belongs to one attention layer"):
        lk.LuongAttention(score)(QUERY, MEMORY)


# A score of one's own.


@keras.saving.register_keras_serializable("tests")
class Sharp(Score):
    """A dot product with a weight, and an argument."""

    def __init__(self, power=1.0):
        self.power = power

    def build(self, add_weight, query_shape, value_shape):
        self.sharpness = add_weight("sharpness", (query_shape[-1],))

    def __call__(self, query, keys):
        swapped = keras.ops.swapaxes(keys, -1, -2)
        found = keras.ops.matmul(query * self.sharpness, swapped)
        return found * self.power

    def get_config(self):
        return {"power": self.power}


@pytest.mark.parametrize("kind", [lk.LuongAttention, lk.LocalAttention])
def test_a_score_of_ones_own_is_saved_and_loaded(kind, tmp_path):
    query, memory = keras.Input((3, 4)), keras.Input((5, 4))
    attention = kind(score_mode=Sharp(3.0))
    decoder = lk.InputFeedingLSTM(4, attention=attention)
    model = keras.Model([query, memory], decoder(query, memory=memory))
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    assert again.layers[-1].cell.attention.score.power == 3.0
    np.testing.assert_array_equal(
        again([QUERY, MEMORY]), model([QUERY, MEMORY])
    )


# Nothing at all.


@pytest.mark.parametrize(
    "batch, steps, source", [(0, 3, 5), (2, 0, 5), (2, 3, 0), (0, 0, 0)]
)
@pytest.mark.parametrize("training", [True, False])
def test_nothing_gives_nothing(batch, steps, source, training):
    query, memory = random(batch, steps, 4), random(batch, source, 4)
    for attention in (
        lk.LuongAttention("concat"),
        lk.LuongAttention("location"),
        lk.LocalAttention(half_width=1),
        lk.LocalAttention("monotonic", half_width=1),
    ):
        context, weights = attention(
            query, memory, training=training, return_attention_scores=True
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
        for state, first in zip(states, start, strict=True):
            np.testing.assert_allclose(state, first, rtol=1e-6)
    memory, *states = lk.Encoder(4, bidirectional=True)(
        random(batch, source, 3), training=training
    )
    assert tuple(memory.shape) == (batch, source, 4)
    if source == 0:
        assert not any(to_numpy(state).any() for state in states)


# What may be left out, and what hypotheses share.


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


def test_hypotheses_share_the_position_and_the_dropped_weights():
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


def test_attention_to_itself_takes_the_mask_of_the_query():
    embedded = keras.layers.Embedding(9, 4, mask_zero=True)(
        np.array([[3, 4, 0, 0]])
    )
    for layer in (lk.LuongAttention("dot"), lk.LocalAttention(half_width=1)):
        _, weights = layer(embedded, return_attention_scores=True)
        _, expected = layer(embedded, embedded, return_attention_scores=True)
        np.testing.assert_array_equal(weights, expected)
        assert not to_numpy(weights)[..., 2:].any()


def test_clipped_states_have_the_type_of_the_others():
    encoder = lk.Encoder(4, cell_clip=1.0, dtype="mixed_bfloat16")
    _, *states = encoder(INPUTS)
    assert {dtype_of(state) for state in states} == {"bfloat16"}


# Shapes, and the wrappers of Keras.


def test_the_shape_of_an_output_is_known():
    attention = lk.LuongAttention()
    assert attention.compute_output_shape((2, 3, 4), (2, 5, 6)) == (2, 3, 6)
    local = lk.LocalAttention()
    assert local.compute_output_shape((2, 3, 4), (2, 5, 6)) == (2, 3, 6)


def test_attention_to_itself_runs_under_time_distributed():
    attention = lk.LuongAttention("general")
    videos = random(2, 3, 5, 4).astype("float32")
    found = keras.layers.TimeDistributed(attention)(videos)
    for i in range(3):
        np.testing.assert_allclose(
            found[:, i], attention(videos[:, i], videos[:, i]), atol=1e-6
        )
    rows = keras.layers.TimeDistributed(lk.LocalAttention(half_width=1))(videos)
    assert tuple(rows.shape) == videos.shape


def test_an_encoder_changes_nothing_in_a_call():
    encoder = lk.Encoder(4)
    encoder(INPUTS)
    before = {
        name: value
        for layer in encoder.stacks[0]
        for name, value in vars(layer).items()
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


@pytest.mark.skipif(BACKEND == "tensorflow", reason="it computes in float64")
def test_float64_is_refused_or_right():
    done = subprocess.run(
        [sys.executable, "-c", FLOAT64], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
