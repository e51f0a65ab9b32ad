import keras
import numpy as np
import pytest

from luong_keras.training.optimizers import (
    ClippedAdam,
    ClippedSGD,
    gradient_norm,
    make_optimizer,
)
from tests.layer_checks import assert_all_close


def step(gradients, names=("kernel", "bias"), dtype="float32", **options):
    """Return variables, zeros before, after a step with a norm up to 5."""
    optimizer = make_optimizer("sgd", 1.0, 5.0, **options)
    variables = [
        keras.Variable(np.zeros_like(gradient), dtype, name=name)
        for gradient, name in zip(gradients, names, strict=False)
    ]
    optimizer.apply([keras.ops.array(g, dtype) for g in gradients], variables)
    return variables


def test_gradients_are_clipped_by_their_global_norm():
    # The norm of (6, 0, 8) is 10.
    found = step([[6.0], [0.0, 8.0]])
    assert_all_close(found, [[-3.0], [0.0, -4.0]], rtol=1e-6)


@pytest.mark.skipif(
    keras.backend.backend() != "tensorflow",
    reason="needs a graph of TensorFlow",
)
def test_the_norm_is_summed_in_a_fixed_order():
    import tensorflow as tf

    # TensorFlow merges additions into one operation whose order varies. The
    # last bit of the norm, and thus the whole run, would be random.
    variables = [keras.Variable([0.0], name=f"kernel_{i}") for i in range(9)]
    graph = (
        tf.function(lambda *given: gradient_norm(given, variables))
        .get_concrete_function(*[tf.ones((1,))] * 9)
        .graph
    )
    kinds = [operation.type for operation in graph.get_operations()]
    assert not {"Add", "AddV2", "AddN"} & set(kinds)
    assert kinds.count("Sum") == 10


def test_scaled_losses_are_clipped_at_the_same_norm():
    variable = keras.Variable([1.0])
    optimizer = ClippedSGD(1.0, clip_norm=5.0, loss_scale_factor=1024.0)
    for gradient, expected in ((0.5, 0.5), (20.0, -4.5)):
        optimizer.apply([keras.ops.array([1024.0 * gradient])], [variable])
        np.testing.assert_allclose(variable, [expected])


@pytest.mark.parametrize("clip_norm", [1e-3, 1.0])
def test_values_that_replace_variables_are_not_clipped(clip_norm):
    """Scales of float8 layers come as the gradients of their variables."""
    kernel, scale = keras.Variable([1.0]), keras.Variable([1.0])
    scale.overwrite_with_gradient = True
    ClippedSGD(1.0, clip_norm=clip_norm).apply(
        [keras.ops.array([0.5]), keras.ops.array([64.0])], [kernel, scale]
    )
    np.testing.assert_allclose(scale, [64.0])
    np.testing.assert_allclose(kernel, [1 - min(0.5, clip_norm)])


@pytest.mark.parametrize("gradient, expected", [(300.0, -5.0), (3.0, -3.0)])
def test_norms_of_half_precision_do_not_overflow(gradient, expected):
    assert_all_close(step([[gradient]], dtype="float16"), [[expected]])


def test_a_norm_of_no_variable_is_zero():
    found = step([[8.0]], ["embeddings"], count_embeddings=False)
    assert_all_close(found, [[-8.0]])


def test_embeddings_outside_the_norm_are_scaled_too():
    gradients, names = [[10.0], [8.0]], ["kernel", "embeddings"]
    plain = step(gradients, names, count_embeddings=False)
    assert_all_close(plain, [[-5.0], [-4.0]])
    scale = 5 / np.sqrt(164)
    expected = [[-10 * scale], [-8 * scale]]
    assert_all_close(step(gradients, names), expected, rtol=1e-6)


def test_zero_gradients_do_not_change_variables():
    variable = keras.Variable([1.0])
    make_optimizer("sgd", 1.0, 5.0).apply([keras.ops.zeros(1)], [variable])
    assert float(variable[0]) == 1.0


@pytest.mark.tensorflow
def test_gradients_of_repeated_rows_are_summed_before_the_norm():
    import tensorflow as tf

    table = keras.Variable(np.zeros((3, 1)), name="table")
    slices = tf.IndexedSlices(
        tf.constant([[3.0], [3.0]]), tf.constant([1, 1]), tf.constant([3, 1])
    )
    make_optimizer("sgd", 1.0, 3.0).apply([slices], [table])
    np.testing.assert_allclose(table, [[0.0], [-3.0], [0.0]])


@pytest.mark.parametrize("clip_norm", [None, 0.5])
def test_adam_trains_an_embedding_like_a_product_with_one_hot_words(clip_norm):
    # TensorFlow's gradient of the embedding has a row for each occurrence.
    words = np.array([[1, 1, 1, 2], [2, 0, 1, 1]])
    tables = []
    for read in (
        keras.layers.Embedding(3, 2),
        keras.layers.Dense(2, use_bias=False),
    ):
        embeds = isinstance(read, keras.layers.Embedding)
        model = keras.Sequential([read, keras.layers.GlobalAveragePooling1D()])
        x = words if embeds else np.eye(3)[words]
        model.build(x.shape)
        read.set_weights([np.array([[0.1, 0.4], [0.3, -0.6], [-0.7, 0.2]])])
        optimizer = make_optimizer("adam", 0.1, clip_norm)
        model.compile(optimizer, "mse", jit_compile=False)
        y = np.array([[1.0, 2.0], [-1.0, 0.5]])
        model.fit(x, y, epochs=3, verbose=0)
        tables.append(read.get_weights()[0])
    np.testing.assert_allclose(*tables, rtol=1e-5)


@pytest.mark.parametrize("norm", [0.0, -1.0, float("nan"), "5"])
def test_norms_that_are_not_positive_are_refused(norm):
    with pytest.raises(ValueError, match="clip_norm.*positive"):
        make_optimizer("sgd", clip_norm=norm)


@pytest.mark.parametrize("kind", [ClippedSGD, ClippedAdam])
def test_accumulated_gradients_are_refused(kind):
    # Each part would be clipped by itself.
    with pytest.raises(ValueError, match="`microbatches`.*TrainingModel"):
        kind(gradient_accumulation_steps=2)


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match="name='adagrad'"):
        make_optimizer("adagrad")


class _PartlyUsed(keras.layers.Layer):
    """Layer with two variables, of which the loss depends on one."""

    def build(self, shape):
        self.used = self.add_weight(shape=(shape[-1], 1), name="used")
        self.idle = self.add_weight(shape=(2,), name="idle")

    def call(self, inputs):
        return keras.ops.matmul(inputs, self.used)


@pytest.mark.slow_after_first
@pytest.mark.parametrize(
    "settings",
    [
        {"clip_norm": None},
        {"clip_norm": 0.5},
        {"clip_norm": 0.5, "weight_decay": 0.01},
        {"on_nonfinite": "note"},
    ],
)
@pytest.mark.filterwarnings("ignore:Gradients do not exist for variables")
def test_variables_without_a_gradient_do_not_change(settings):
    def trained(layer, first=None):
        keras.utils.set_random_seed(3)
        model = keras.Sequential([layer])
        model.build((None, 3))
        if first is not None:
            model.set_weights([first])
        before = model.get_weights()
        model.compile(make_optimizer("adam", 0.1, **settings), "mse")
        for _ in range(3):
            model.train_on_batch(np.ones((4, 3)), np.ones((4, 1)))
        return before, model.get_weights()

    before, after = trained(_PartlyUsed())
    _, expected = trained(keras.layers.Dense(1, use_bias=False), before[0])
    np.testing.assert_allclose(after[0], expected[0], rtol=1e-6)
    if keras.backend.backend() != "jax" or "weight_decay" not in settings:
        np.testing.assert_array_equal(after[1], before[1])


@pytest.mark.skipif(
    keras.backend.backend() == "jax", reason="gradients of zero, never None"
)
def test_warnings_name_variables_without_a_gradient():
    layer = _PartlyUsed(name="partly")
    layer.build((None, 3))
    optimizer = make_optimizer("sgd", 1.0)
    one = keras.ops.ones((3, 1))
    with pytest.warns(UserWarning, match="do not exist for .*partly/idle"):
        optimizer.apply([one, None], [layer.used, layer.idle])
    with pytest.raises(ValueError, match="No gradients provided"):
        optimizer.apply([None, None], [layer.used, layer.idle])
