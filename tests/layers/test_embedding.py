import keras
import numpy as np
import pytest
from keras import ops

from luong_keras.layers.embedding import Embedding
from tests.layer_checks import gradients, random, to_numpy, weighted_sum

WORDS = np.array([[4, 1, 4], [0, 8, 1]], "int32")


def pair(dtype="float32"):
    """Return our layer and that of Keras, with the same table."""
    return [
        kind(9, 3, weights=random(9, 3).astype("float32"), dtype=dtype)
        for kind in (Embedding, keras.layers.Embedding)
    ]


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
def test_outputs_and_gradients_equal_those_of_keras(dtype):
    ours, theirs = pair(dtype)
    found, expected = ours(WORDS), theirs(WORDS)
    assert found.dtype == expected.dtype
    found, expected = (ops.cast(x, "float32") for x in (found, expected))
    np.testing.assert_array_equal(found, expected)
    weights = random(2, 3, 3)
    for layer in (ours, theirs):
        (gradient,) = gradients(
            lambda layer=layer: weighted_sum(
                ops.cast(layer(WORDS), "float32"), weights
            ),
            [layer.embeddings],
        )
        expected_gradient = np.zeros((9, 3))
        np.add.at(expected_gradient, WORDS, weights)
        tolerance = 1e-6 if dtype == "float32" else 2e-2
        np.testing.assert_allclose(gradient, expected_gradient, atol=tolerance)


@pytest.mark.tensorflow
@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
def test_the_table_is_never_read_as_a_whole(dtype):
    import tensorflow as tf

    for layer, whole in zip(pair(dtype), (False, True), strict=True):
        graph = tf.function(layer).get_concrete_function(WORDS).graph
        kinds = {operation.type for operation in graph.get_operations()}
        assert ("ReadVariableOp" in kinds) == whole


def test_weights_saved_by_the_keras_layer_are_loaded(tmp_path):
    models = []
    for layer in reversed(pair()):
        source = keras.Input((None,), dtype="int32")
        models.append(keras.Model(source, layer(source)))
    saved, model = models
    saved.save_weights(tmp_path / "model.weights.h5")
    model.layers[-1].embeddings.assign(np.zeros((9, 3)))
    model.load_weights(tmp_path / "model.weights.h5")
    np.testing.assert_array_equal(
        to_numpy(model.layers[-1].embeddings),
        to_numpy(saved.layers[-1].embeddings),
    )


def test_lora_changes_the_rows():
    layer, _ = pair()
    layer.enable_lora(2)
    layer.lora_embeddings_b.assign(np.ones((2, 3)))
    np.testing.assert_allclose(
        layer(WORDS), to_numpy(layer.embeddings)[WORDS], rtol=1e-6
    )
