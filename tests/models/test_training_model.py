"""Gradient accumulation over micro-batches, losses in parts, freezing."""

import fnmatch
import functools
import types

import keras
import numpy as np
import pytest

from luong_keras.config import AttentionConfig
from luong_keras.layers.output_projection import OutputProjection
from luong_keras.models.training_model import TrainingModel
from luong_keras.models.translation_model import TranslationModel
from luong_keras.ops import microbatch_normalization
from luong_keras.recipe.fine_tuning import freeze
from luong_keras.training.losses import (
    MaskedSparseCategoricalCrossentropy,
    TranslationLoss,
)
from luong_keras.training.metrics import TokenCount, TokenPerplexity
from luong_keras.training.optimizers import make_optimizer
from tests.layer_checks import BACKEND, assert_all_close, small_config

ON_JAX = BACKEND == "jax"
HAS_MICROBATCHES = pytest.mark.skipif(
    BACKEND == "torch", reason="micro-batches need TensorFlow or JAX"
)
ON_TENSORFLOW = pytest.mark.skipif(
    BACKEND != "tensorflow", reason="parallel micro-batches need TensorFlow"
)
PARALLEL = pytest.param(4, 2, marks=ON_TENSORFLOW)
ROWS, WORDS = 6, 9
GLOBAL = AttentionConfig(kind="global")
LOSSES = {
    "word": {"normalization": "word"},
    "sentence": {},
    "nominal": {"nominal_batch_size": 7},
}


def batch():
    """Return rows of different lengths, the last one empty."""
    rng = np.random.default_rng(3)

    def padded(lengths):
        ids = rng.integers(4, WORDS, (ROWS, max(lengths)))
        inside = np.arange(ids.shape[1]) < np.array(lengths)[:, None]
        return (ids * inside).astype("int32")

    target = padded([5, 1, 2, 4, 1, 0])
    x = {
        "source": padded([3, 6, 1, 2, 5, 0]),
        "target_in": np.where(target > 0, np.roll(target, 1, 1), 0),
        "target_out": target,
    }
    x["target_in"][:, 0] = 2 * (target[:, 0] > 0)
    return x, {"word": target, "hits": target}


def small_model(**changes):
    keras.utils.set_random_seed(1)
    return TranslationModel(small_config(WORDS, initial_range=0.8, **changes))


def trained(
    parts, loss, steps=3, precision="float32", parallel=1, size=None, clip=0.2
):
    """Return the weights after some steps and the logs of the last.

    With a size of batches, the steps are epochs.
    """
    model = small_model(
        attention=GLOBAL, dropout=0.0, precision=precision
    ).training_model
    model.microbatches, model.parallel_microbatches = parts, parallel
    optimizer = make_optimizer("sgd", 0.5, clip)
    if precision == "mixed_float16":
        optimizer = keras.optimizers.LossScaleOptimizer(optimizer, 64.0)
    dtype = "float64" if precision == "float64" else None
    model.compile(
        optimizer,
        {"word": TranslationLoss(**LOSSES[loss], dtype=dtype), "hits": None},
        metrics={"word": [TokenPerplexity(), TokenCount(name="count")]},
        jit_compile=ON_JAX,
    )
    x, y = batch()
    for _ in range(steps):
        if size is None:
            logs = model.train_on_batch(x, y, return_dict=True)
        else:
            logs = model.fit(x, y, size, shuffle=False, verbose=0).history
    values = [keras.ops.convert_to_numpy(v) for v in model.trainable_variables]
    return values, logs


def test_evaluation_never_holds_all_logits(monkeypatch):
    model = small_model(attention=GLOBAL).training_model
    x, y = batch()
    # Outside of `evaluate` and `fit` the layers compute whole logits.
    losses = model(x, training=False)["word"]
    real = y["word"] > 0
    expected = np.mean(keras.ops.convert_to_numpy(losses)[real])
    model.compile(
        loss={"word": TranslationLoss("word"), "hits": None},
        jit_compile=ON_JAX,
    )
    model.evaluate(x, y, batch_size=ROWS, verbose=0)  # builds the metrics
    monkeypatch.setattr(OutputProjection, "call", None)
    model.make_test_function(force=True)
    found = model.evaluate(x, y, batch_size=ROWS, verbose=0)
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@functools.cache
def trained_whole(loss):
    """Return weights and logs after training on whole batches."""
    return trained(1, loss)


@pytest.mark.slow
@HAS_MICROBATCHES
@pytest.mark.parametrize(
    "parts, loss, parallel",
    [
        (3, "word", 1),
        (3, "sentence", 1),
        (3, "nominal", 1),
        pytest.param(2, "word", 2, marks=ON_TENSORFLOW),
        pytest.param(6, "word", 3, marks=ON_TENSORFLOW),
    ],
)
def test_microbatches_give_the_step_of_the_whole(parts, loss, parallel):
    expected, logs = trained_whole(loss)
    found, found_logs = trained(parts, loss, parallel=parallel)
    assert_all_close(found, expected, atol=1e-6)
    assert found_logs == pytest.approx(logs, rel=1e-5)


def dense_model(parts, parallel=1, rate=0.5, layer=None, **options):
    """Return a compiled model whose outputs, as losses, are its inputs."""
    inputs = keras.Input((2,))
    same = keras.layers.Dense(2, kernel_initializer="identity", **options)
    model = TrainingModel(inputs, (layer or same)(inputs))
    model.microbatches, model.parallel_microbatches = parts, parallel
    model.compile(
        make_optimizer("sgd", rate),
        TranslationLoss(normalization="word"),
        jit_compile=ON_JAX,
    )
    return model


@HAS_MICROBATCHES
def test_microbatches_give_the_loss_of_unequal_batches():
    """Each batch is weighted by its rows, as without micro-batches."""
    ids = np.array([[4, 3]] * 6)
    losses = np.array([[1.0, 1.0]] * 4 + [[7.0, 7.0]] * 2)
    for parts in (1, 2):
        model = dense_model(parts, rate=0.0)
        found = model.fit(losses, ids, 4, shuffle=False, verbose=0).history
        assert found["loss"] == pytest.approx([3.0])


@pytest.mark.slow
@ON_TENSORFLOW
def test_a_batch_may_have_fewer_rows_than_parts():
    """The last batch of an epoch has two rows."""
    options = {"steps": 2, "size": 4, "clip": 5.0}
    expected, _ = trained(1, "sentence", **options)
    for parallel in (1, 3):
        found, _ = trained(3, "sentence", parallel=parallel, **options)
        assert_all_close(found, expected, atol=1e-6)


@ON_TENSORFLOW
def test_one_row_may_be_a_batch_of_parallel_parts():
    import tensorflow as tf

    found = []
    for parts in (1, 2):
        model = dense_model(parts, parallel=parts)
        rows = np.ones((1, 2), "float32"), np.array([[4, 3]])
        model.fit(tf.data.Dataset.from_tensors(rows), verbose=0)
        found.append(keras.ops.convert_to_numpy(model.trainable_variables[0]))
    np.testing.assert_allclose(*found, rtol=1e-6)


@pytest.mark.skipif(not ON_JAX, reason="TensorFlow has parts of any size")
def test_microbatches_must_divide_the_rows_of_training_on_jax():
    four, five = ((np.ones((n, 2)), np.array([[4, 3]] * n)) for n in (4, 5))
    with pytest.raises(ValueError, match="Received: 5 rows, microbatches=2"):
        dense_model(2).fit(*five, batch_size=8, verbose=0)
    dense_model(2).fit(*four, validation_data=five, verbose=0)


@HAS_MICROBATCHES
def test_losses_of_layers_are_refused_in_microbatches():
    rows = np.ones((4, 2)), np.array([[4, 3]] * 4)
    dense_model(1, kernel_regularizer="l2").fit(*rows, verbose=0)
    with pytest.raises(ValueError, match="Received: 1 of them"):
        dense_model(2, kernel_regularizer="l2").fit(*rows, verbose=0)


@HAS_MICROBATCHES
@pytest.mark.filterwarnings("ignore:Gradients do not exist")
@pytest.mark.parametrize("parts, parallel", [(1, 1), (3, 1), PARALLEL])
def test_a_variable_without_gradient_stays(parts, parallel):
    class Unused(keras.layers.Layer):
        def build(self, shape):
            self.other = self.add_weight(shape=(2,), initializer="ones")
            self.weight = self.add_weight(shape=(2,), initializer="ones")

        def call(self, x, training=False):
            return x * self.weight if training else x

    inputs, layer = keras.Input((2,)), Unused()
    model = TrainingModel(inputs, layer(inputs))
    model.microbatches, model.parallel_microbatches = parts, parallel
    model.compile(
        make_optimizer("sgd", 0.5), TranslationLoss(), jit_compile=ON_JAX
    )
    model.train_on_batch(np.ones((6, 2)), np.array([[4, 3]] * 6))
    found = [np.array(layer.other).tolist(), np.array(layer.weight).tolist()]
    assert found == [[1.0, 1.0], [0.5, 0.5]]


def fake_model(apply_gradients, *names):
    """Return what the training step reads of a model."""
    return types.SimpleNamespace(
        trainable_variables=names,
        optimizer=types.SimpleNamespace(apply_gradients=apply_gradients),
        metrics=[keras.metrics.Mean("loss")],
    )


def preceding_operations(operation):
    """Return all operations that an operation of a graph waits for."""
    found, ahead = set(), [operation]
    while ahead:
        one = ahead.pop()
        inputs = [*one.control_inputs, *(tensor.op for tensor in one.inputs)]
        ahead += set(inputs) - found
        found |= set(inputs)
    return found


@ON_TENSORFLOW
@pytest.mark.parametrize(
    "parallel, waits",
    [
        (1, [[], [0], [0, 1], [0, 1, 2]]),
        (2, [[], [], [0], [1]]),
        (4, [[], [], [], []]),
    ],
)
def test_microbatch_waits_for_the_previous_one_of_its_worker(
    monkeypatch, parallel, waits
):
    import tensorflow as tf

    from luong_keras.models import microbatches

    starts, ends = [], []

    def part(model, rows):
        total = tf.reduce_sum(rows)
        starts.append(rows.op)
        ends.append(total.op)
        return total, None, [total], {}

    monkeypatch.setattr(microbatches, "_compute_part", part)
    model = fake_model(list, "weight")
    step = tf.function(
        lambda rows: microbatches.train_step(model, rows, 4, parallel),
        autograph=False,
    ).get_concrete_function(tf.ones((8, 1)))
    if parallel == 1:
        assert len(starts) == 1  # one graph, called four times
        starts = ends = [
            one
            for one in step.graph.get_operations()
            if "PartitionedCall" in one.type
        ]
    found = [
        [i for i, end in enumerate(ends) if end in preceding_operations(start)]
        for start in starts
    ]
    assert found == waits


@ON_TENSORFLOW
@pytest.mark.parametrize("parallel", [1, 2, 3, 6])
def test_microbatches_are_added_up_in_a_fixed_order(monkeypatch, parallel):
    import tensorflow as tf
    from tensorflow.python.eager import context

    from luong_keras.models import microbatches

    # An AddN of three or more tensors adds them in an order that varies, as
    # with the norm of the gradients. TensorFlow's graph optimiser makes AddN
    # from additions.
    def part(model, rows):
        total = tf.reduce_sum(rows)
        return total, tf.square(total), [tf.exp(total), tf.sin(rows)], {}

    monkeypatch.setattr(microbatches, "_compute_part", part)
    applied = []
    model = fake_model(applied.extend, "weight", "other")

    @tf.function(autograph=False)
    def step(rows):
        logs = microbatches.train_step(model, rows, 6, parallel)
        return logs, *(gradient for gradient, _ in applied)

    context.enable_run_metadata()
    try:
        step(tf.ones((12, 1)))
        graphs = context.export_run_metadata().function_graphs
    finally:
        context.disable_run_metadata()
    widest = [
        len(node.input)
        for graph in graphs
        for node in graph.post_optimization_graph.node
        if node.op == "AddN"
    ]
    assert graphs and max(widest, default=2) == 2


@pytest.mark.skipif(
    BACKEND == "tensorflow", reason="TensorFlow has parallel micro-batches"
)
def test_parallel_microbatches_are_refused_elsewhere():
    message = "parallel_microbatches=2 on (jax|torch)"
    with pytest.raises(ValueError, match=message):
        trained(2, "word", steps=1, parallel=2)


@pytest.mark.skipif(
    BACKEND != "torch", reason="TensorFlow and JAX have micro-batches"
)
def test_microbatches_are_refused_on_torch():
    trained(1, "word", steps=1)
    with pytest.raises(ValueError, match="microbatches=2 on torch"):
        trained(2, "word", steps=1)


@pytest.mark.slow
@HAS_MICROBATCHES
def test_microbatches_with_loss_scaling_in_float16():
    expected, _ = trained(1, "word", precision="mixed_float16")
    found, _ = trained(2, "word", precision="mixed_float16")
    assert_all_close(found, expected, atol=2e-3)


@pytest.mark.slow
@ON_TENSORFLOW
def test_microbatches_with_a_loss_in_float64():
    expected, logs = trained(1, "word", steps=1, precision="float64")
    found, found_logs = trained(3, "word", steps=1, precision="float64")
    assert found_logs["loss"] == pytest.approx(logs["loss"], rel=1e-6)
    assert_all_close(found, expected, atol=1e-14)


@pytest.mark.parametrize(
    "name, number, divided, added",
    [("word", 3, 7 / 3, 7), ("sentence", 2, 7 / 2, 7), ("nominal", None, 1, 1)],
)
def test_loss_of_a_microbatch_is_a_sum(name, number, divided, added):
    ids = np.array([[4, 3, 0], [3, 0, 0], [0, 0, 0]])
    losses = np.array([[1.0, 2.0, 9.0], [4.0, 9.0, 9.0], [9.0, 9.0, 9.0]])
    loss = TranslationLoss(**LOSSES[name])
    assert float(loss(ids, losses)) == pytest.approx(divided)
    with microbatch_normalization.sum_losses() as part:
        # Keras divides by the three rows.
        assert float(loss(ids, losses)) == pytest.approx(added)
    assert part == [number]


def test_other_losses_are_refused_in_microbatches():
    with (
        pytest.raises(ValueError, match="Received: another loss"),
        microbatch_normalization.sum_losses(),
    ):
        keras.losses.MeanSquaredError()(np.ones((2, 1)), np.ones((2, 1)))
    two = TranslationLoss(), MaskedSparseCategoricalCrossentropy()
    ids = np.array([[4, 3]])
    with (
        pytest.raises(ValueError, match="Received: several"),
        microbatch_normalization.sum_losses(),
    ):
        two[0](ids, np.ones((1, 2)))
        two[1](ids, np.ones((1, 2, 9)))
    # The failed blocks leave no state behind.
    assert float(two[0](ids, np.ones((1, 2)))) == 2.0


def test_training_model_is_saved_and_loaded(tmp_path):
    inputs = keras.Input((2,))
    model = TrainingModel(inputs, keras.layers.Dense(1)(inputs))
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    assert type(again) is TrainingModel
    x = np.ones((1, 2))
    np.testing.assert_array_equal(again(x), model(x))


@pytest.mark.slow
@HAS_MICROBATCHES
@pytest.mark.parametrize("frozen", ["decoder", "encoder", "*/kernel_0"])
def test_frozen_weights_stay(frozen):
    """Layers or single weights are frozen; all other weights are trained."""
    translation_model = small_model()
    model = translation_model.training_model
    if "/" in frozen:
        freeze(model, [frozen])
    else:
        getattr(translation_model, frozen).trainable = False
    model.compile(
        make_optimizer("sgd", 0.5),
        {"word": TranslationLoss(), "hits": None},
        jit_compile=ON_JAX,
        # Two steps take less time than building a graph.
        run_eagerly=not ON_JAX,
    )
    before = model.get_weights()
    model.fit(*batch(), batch_size=ROWS, epochs=2, verbose=0)
    for weight, old, new in zip(
        model.weights, before, model.get_weights(), strict=True
    ):
        path = weight.path
        stays = fnmatch.fnmatch(path, frozen) or path.startswith(f"{frozen}/")
        assert np.array_equal(old, new) == stays, path


@pytest.mark.parametrize("name", ["microbatches", "parallel_microbatches"])
def test_microbatches_are_no_argument(name):
    inputs = keras.Input((2,))
    with pytest.raises(ValueError, match=f"`model.{name} = 2`"):
        TrainingModel(inputs, inputs + 1, **{name: 2})
