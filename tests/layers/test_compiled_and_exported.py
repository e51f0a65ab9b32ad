"""Every public layer compiled by XLA on TensorFlow, and exported.

The formats are ONNX and, of layers without a loop, LiteRT.
"""

import functools
import importlib

import keras
import numpy as np
import pytest

from luong_keras import AttentionRNN, Encoder, InputFeedingLSTM, LocalAttention
from tests.layer_checks import (
    LAYERS,
    UNITS,
    assert_all_close,
    few_at_first,
    random,
    randomize,
)

pytestmark = pytest.mark.tensorflow
every_layer = pytest.mark.parametrize(
    "name",
    few_at_first(
        LAYERS,
        ("LocalAttention predictive", "LuongAttention location"),
    ),
)
# (T, S): one step, sources shorter and longer than a window, and a source long
# enough that windows are gathered from it.
LENGTHS = [(1, 2), (3, 5), (4, 30), (30, 200)]


class TraceCounter(keras.layers.Layer):
    """Identity layer that counts traces: Python runs `call` once per trace.

    Inputs pass through it because Keras before 3.14 needs every input of a
    model to be connected to an output.
    """

    def __init__(self):
        super().__init__()
        self.count = 0

    def call(self, x):
        self.count += 1
        return x


def model_of(name):
    make, apply = LAYERS[name]
    query = keras.Input((None, UNITS), name="query")
    memory = keras.Input((None, UNITS), name="memory")
    mask = keras.Input((None,), dtype="bool", name="mask")
    layer, counter = make("float32"), TraceCounter()
    inputs = [query, memory, mask]
    query, memory, mask = counter(inputs)
    outputs = apply(layer, query, memory, memory_mask=mask)
    randomize(layer)
    return keras.Model(inputs, outputs), counter


def inputs_of(steps, source):
    return [
        random(2, steps, UNITS).astype("float32"),
        random(2, source, UNITS, seed=1).astype("float32"),
        np.arange(source) < [[source], [source // 2]],
    ]


@pytest.mark.slow
@every_layer
def test_xla_trains_at_changing_lengths(name):
    losses = {}
    for compiled in (False, True):
        keras.utils.set_random_seed(1)
        model, counter = model_of(name)
        model.compile(keras.optimizers.SGD(0.1), "mse", jit_compile=compiled)
        inputs = [inputs_of(*lengths) for lengths in 2 * LENGTHS]
        batches = [
            (x, keras.tree.map_structure(np.zeros_like, model(x)))
            for x in inputs
        ]
        counter.count = 0
        losses[compiled] = [
            float(model.train_on_batch(x, y)) for x, y in batches
        ]
        # After the program for the first lengths, one program serves all.
        assert counter.count <= 3
    np.testing.assert_allclose(losses[True], losses[False], rtol=1e-4)


@pytest.mark.slow_after_first
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize(
    "name, batch, source",
    [
        ("AttentionRNN", 0, 5),
        ("InputFeedingLSTM", 0, 5),
        ("LocalAttention monotonic", 2, 0),
        ("LocalAttention predictive", 2, 0),
    ],
)
def test_graph_of_unknown_sizes_accepts_empty_inputs(
    name, batch, source, training
):
    import tensorflow as tf

    model, _ = model_of(name)
    shapes = [(None, None, UNITS)] * 2 + [(None, None)]
    types = [tf.float32, tf.float32, tf.bool]
    run = tf.function(
        lambda *inputs: model(list(inputs), training=training),
        input_signature=[*map(tf.TensorSpec, shapes, types)],
    )
    run(*inputs_of(3, 5))
    found = run(*(x[:batch] for x in inputs_of(3, source)))
    np.testing.assert_array_equal(found, np.zeros((batch, 3, UNITS)))


@pytest.mark.parametrize("alignment", ["monotonic", "predictive"])
def test_graph_of_unknown_sizes_accepts_an_empty_memory(alignment):
    import tensorflow as tf

    layer = LocalAttention(alignment, half_width=1)
    query, memory, _ = inputs_of(3, 5)
    layer(query, memory)
    run = tf.function(
        functools.partial(layer, return_attention_scores=True),
        input_signature=[tf.TensorSpec((None, None, UNITS))] * 2,
    )
    for batch, steps, source in ((2, 3, 0), (2, 0, 5), (0, 3, 5)):
        context, weights = run(query[:batch, :steps], memory[:batch, :source])
        np.testing.assert_array_equal(context, np.zeros((batch, steps, UNITS)))
        assert weights.shape == (batch, steps, source)


@pytest.mark.slow_after_first
# Keras' `predict` traces a function of any number of rows, since the
# last batch is smaller.
@pytest.mark.parametrize("steps, source", [(0, 5), (3, 0), (0, 0)])
@pytest.mark.parametrize("attention", ["local-m", "general"])
def test_models_predict_rows_of_no_words(attention, steps, source):
    inputs = keras.Input((steps, UNITS)), keras.Input((source, UNITS))
    memory, *states = Encoder(UNITS)(inputs[1])
    outputs = InputFeedingLSTM(UNITS, attention=attention)(
        inputs[0], memory=memory, return_attention_scores=True
    )
    model = keras.Model(inputs, [*outputs, memory, *states])
    found = model.predict(
        [np.ones((3, steps, UNITS)), np.ones((3, source, UNITS))],
        batch_size=2,
        verbose=0,
    )
    assert [x.shape for x in found] == [
        (3, steps, UNITS),
        (3, steps, source),
        (3, source, UNITS),
        (3, UNITS),
        (3, UNITS),
    ]


@pytest.mark.slow_after_first
@every_layer
def test_onnx_model_runs_at_any_length(name, tmp_path):
    if name == "WordLosses":
        pytest.skip("only used in training")
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("tf2onnx")
    model, _ = model_of(name)
    model(inputs_of(3, 5))
    path = str(tmp_path / "model.onnx")
    model.export(path, format="onnx", verbose=False)
    session = onnxruntime.InferenceSession(
        path, providers=["CPUExecutionProvider"]
    )
    names = [each.name for each in session.get_inputs()]
    for steps, source in LENGTHS:
        arrays = inputs_of(steps, source)
        by_name = dict(zip(("query", "memory", "mask"), arrays, strict=True))
        found = session.run(None, {key: by_name[key] for key in names})
        expected = keras.tree.flatten(model(arrays))
        # The rounding error of a predicted position grows with the source.
        assert_all_close(found, expected, atol=1e-7 * (100 + source))


@pytest.mark.slow_after_first
@pytest.mark.filterwarnings("ignore:.*Interpreter is deprecated")
@every_layer
def test_litert_model_runs_at_any_length(name, tmp_path):
    model, _ = model_of(name)
    loops = AttentionRNN, Encoder
    if name == "WordLosses" or any(isinstance(x, loops) for x in model.layers):
        pytest.skip("a loop, or only used in training")
    if "litert" not in keras.Model.export.__doc__:
        pytest.skip(f"Keras {keras.__version__} does not export to LiteRT")
    lite = importlib.import_module("tensorflow").lite
    model(inputs_of(3, 5))
    path = str(tmp_path / "model.tflite")
    model.export(path, format="litert", verbose=False)
    interpreter = lite.Interpreter(path)
    for steps, source in LENGTHS:
        arrays = inputs_of(steps, source)
        expected = keras.tree.flatten(model(arrays))
        run = interpreter.get_signature_runner()
        names = run.get_input_details()
        by_name = dict(zip(("query", "memory", "mask"), arrays, strict=True))
        found = run(**{key: by_name[key] for key in names})
        assert_all_close(
            [found[key] for key in sorted(found)],
            expected,
            atol=1e-7 * (100 + source),
        )
