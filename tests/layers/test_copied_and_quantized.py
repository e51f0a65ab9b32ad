"""Every public layer cloned, quantized, with LoRA, rebuilt and plotted."""

import json

import keras
import pytest

from tests.layer_checks import (
    LAYERS,
    assert_all_close,
    few_on_jax,
    int8_rounded,
    random,
    to_numpy,
)
from tests.versions.exchange import model_of, outputs_of

every_layer = pytest.mark.parametrize(
    "name",
    few_on_jax(
        LAYERS, ("LuongAttention", "OutputProjection tied", "WordLosses")
    ),
)


def assert_equal(found, expected, atol=0.0):
    """Compare outputs of two models; `atol` allows other summation orders."""
    assert_all_close(
        outputs_of(found), outputs_of(expected), rtol=atol, atol=atol
    )


def copy_of(name, model):
    """Build the model of a layer again, with the weights of `model`."""
    layer, copy = model_of(name)
    copy.set_weights(model.get_weights())
    return layer, copy


@pytest.mark.slow_after_first
@every_layer
@pytest.mark.filterwarnings("ignore:Layer .* does not have a `quantize`")
def test_int8_model_equals_one_with_a_rounded_table(name, tmp_path):
    layer, model = model_of(name)
    other, rounded = copy_of(name, model)
    embedding = getattr(other, "embedding", None)
    if embedding is not None:
        table = to_numpy(embedding.embeddings)
        embedding.embeddings.assign(int8_rounded(table))
    model.quantize("int8")
    codes = [v for v in layer.weights if v.dtype == "int8"]
    assert len(codes) == (embedding is not None)
    assert_equal(model, rounded, atol=1e-5 if codes else 0)
    model.save(tmp_path / "model.keras")
    assert_equal(keras.saving.load_model(tmp_path / "model.keras"), model)
    clone = keras.models.clone_model(model)
    clone.set_weights(model.get_weights())
    assert_equal(clone, model)


@pytest.mark.parametrize("int8", [False, True])
@pytest.mark.parametrize("name", ["OutputProjection tied", "Bridge"])
@pytest.mark.filterwarnings("ignore:Layer .* does not have a `quantize`")
def test_lora_adds_a_low_rank_product(name, int8, tmp_path):
    layer, model = model_of(name)
    other, merged = copy_of(name, model)
    if int8:
        model.quantize("int8")
    plain, _ = copy_of(name, merged)
    inner, inner_merged = (
        getattr(each, "embedding", None) or each.projections[0]
        for each in (layer, other)
    )
    before = outputs_of(model)
    inner.enable_lora(2, lora_alpha=3)
    assert_all_close(outputs_of(model), before, atol=1e-6)
    is_embedding = isinstance(inner, keras.layers.Embedding)
    a, b = (
        (inner.lora_embeddings_a, inner.lora_embeddings_b)
        if is_embedding
        else (inner.lora_kernel_a, inner.lora_kernel_b)
    )
    b.assign(random(*b.shape, seed=3))
    weight = inner_merged.embeddings if is_embedding else inner_merged.kernel
    value = to_numpy(weight)
    if int8 and is_embedding:
        value = int8_rounded(value)
    weight.assign(value + 3 / 2 * to_numpy(a) @ to_numpy(b))
    assert_equal(model, merged, atol=1e-5)
    if not int8:
        # On saving codes, Keras rounds the merged table again.
        model.save(tmp_path / "model.keras")
        loaded = keras.saving.load_model(tmp_path / "model.keras")
        assert_equal(loaded, model, atol=1e-5)


@every_layer
def test_layer_is_rebuilt_from_its_configurations(name):
    layer, _ = model_of(name)
    config, build_config = json.loads(
        json.dumps([layer.get_config(), layer.get_build_config()])
    )
    again = type(layer).from_config(config)
    again.build_from_config(build_config)
    assert [(v.name, v.shape) for v in again.weights] == [
        (v.name, v.shape) for v in layer.weights
    ]


@every_layer
def test_layer_is_in_the_summary_and_the_plot(name):
    pytest.importorskip("pydot")
    layer, model = model_of(name)
    lines = []
    model.summary(
        print_fn=lambda line, **_: lines.append(line),
        expand_nested=True,
        line_length=200,
    )
    plot = keras.utils.model_to_dot(
        model, show_shapes=True, show_dtype=True, show_layer_names=True
    )
    for text in ("\n".join(lines), plot.to_string()):
        assert layer.name in text
