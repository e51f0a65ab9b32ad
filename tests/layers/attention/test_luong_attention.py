import keras
import numpy as np
import pytest
from keras import ops

from luong_keras import LocalAttention, LuongAttention
from luong_keras.layers.attention.score import Score
from luong_keras.layers.attention.scores import SCORES, DotScore
from tests.layer_checks import (
    EXACT,
    KERAS,
    assert_all_close,
    gradients,
    prefix_mask,
    random,
    randomize,
    softmax,
    to_numpy,
)

MODES = list(SCORES)
LENGTHS = [5, 3]
MASK = prefix_mask(LENGTHS, 5)


def make(mode, memory_width=4, **options):
    layer = LuongAttention(mode, dtype="float64", **options)
    return randomize(layer, (None, None, 4), (None, None, memory_width))


def reference_scores(layer, query, memory):
    """Compute (B, T, S) one pair of vectors at a time, as in the paper."""
    mode = layer.score_mode
    weights = {variable.name: to_numpy(variable) for variable in layer.weights}

    def score(h, position, vector):
        if mode == "dot":
            return h @ vector
        if mode == "scaled_dot":
            return h @ vector / np.sqrt(len(h))
        if mode == "cosine":
            norms = np.linalg.norm(h) * np.linalg.norm(vector)
            return h @ vector / norms
        if mode == "general":
            return h @ weights["attention_kernel"].T @ vector
        if mode == "location":
            return (h @ weights["location_kernel"])[position]
        if layer.concat_form == "query_only":
            inner = h @ weights["query_kernel"] + vector
        elif layer.concat_form == "separate":
            inner = h @ weights["query_kernel"] + vector @ weights["key_kernel"]
        else:
            inner = np.concatenate([h, vector]) @ weights["attention_kernel"]
        return weights["attention_vector"] @ np.tanh(inner)

    scores = [
        [[score(h, s, vector) for s, vector in enumerate(m)] for h in q]
        for q, m in zip(query, memory, strict=True)
    ]
    return np.array(scores) * weights.get("scale", 1.0)


@pytest.mark.parametrize("use_scale", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_weights_and_context(mode, use_scale, float64):
    width = 4 if issubclass(SCORES[mode], DotScore) else 3
    layer = make(mode, width, use_scale=use_scale)
    query, memory = random(2, 3, 4), random(2, 5, width, seed=1)
    scores = reference_scores(layer, query, memory)
    for mask in (None, MASK):
        context, weights = layer(
            query, memory, value_mask=mask, return_attention_scores=True
        )
        expected = softmax(scores, True if mask is None else mask[:, None])
        np.testing.assert_allclose(weights, expected, **EXACT)
        np.testing.assert_allclose(context, expected @ memory, **EXACT)


@pytest.mark.parametrize("form", [None, "joint", "separate", "query_only"])
def test_the_published_forms_of_concat(form, float64):
    layer = make("concat", 3, concat_form=form)
    query, memory = random(2, 3, 4), random(2, 5, 3, seed=1)
    weights = layer(query, memory, return_attention_scores=True)[1]
    expected = softmax(reference_scores(layer, query, memory))
    np.testing.assert_allclose(weights, expected, **EXACT)
    matrices = {v.name for v in layer.weights} - {"attention_vector"}
    assert matrices == {
        "separate": {"query_kernel", "key_kernel"},
        "query_only": {"query_kernel"},
    }.get(form, {"attention_kernel"})


def test_the_cosine_of_a_vector_of_zeros_is_zero(float64):
    layer = make("cosine")
    query = keras.Variable(np.zeros((1, 1, 4)), dtype="float64")
    memory = keras.Variable(np.zeros((1, 5, 4)), dtype="float64")
    found = gradients(
        lambda: ops.sum(layer(query, memory) ** 2), [query, memory]
    )
    assert all(np.isfinite(gradient).all() for gradient in found)
    weights = layer(query, memory, return_attention_scores=True)[1]
    np.testing.assert_allclose(weights, np.full((1, 1, 5), 0.2), **EXACT)


@pytest.mark.parametrize("units", [7, None])
def test_units_of_concat_default_to_the_query_width(units, float64):
    layer = make("concat", 3, units=units)
    query, memory = random(2, 3, 4), random(2, 5, 3)
    expected = softmax(reference_scores(layer, query, memory))
    assert layer.score.attention_vector.shape == (units or 4,)
    np.testing.assert_allclose(layer(query, memory), expected @ memory, **EXACT)


def test_keys_are_used_and_are_the_value_without_a_projection():
    query, memory = random(2, 3, 4), ops.convert_to_tensor(random(2, 5, 4))
    for mode in ("dot", "scaled_dot", "location"):
        layer = LuongAttention(mode)
        layer.build((None, None, 4), (None, None, 4))
        assert layer.project_keys(memory) is memory
    layer = LuongAttention("general")
    weights = layer(
        query, memory, keys=memory * 0, return_attention_scores=True
    )[1]
    np.testing.assert_allclose(weights, np.full((2, 3, 5), 0.2), rtol=1e-6)


# Location.


@pytest.mark.parametrize("mask_location", [True, False])
@pytest.mark.parametrize("mask", [None, MASK])
@pytest.mark.parametrize("max_length", [3, 5, 7])
def test_location_knows_a_fixed_number_of_positions(
    max_length, mask, mask_location, float64
):
    layer = make("location", max_length=max_length, mask_location=mask_location)
    query, memory = random(2, 3, 4), random(2, 5, 4)
    context, weights = layer(
        query, memory, value_mask=mask, return_attention_scores=True
    )
    location_scores = query @ to_numpy(layer.score.location_kernel)
    lengths = [5, 5] if mask is None else LENGTHS
    expected = np.zeros((2, 3, 5))
    for b, length in enumerate(lengths):
        reached = min(length, max_length)
        if mask_location:
            found = softmax(location_scores[b, :, :reached])
        else:
            found = softmax(location_scores[b])[:, :reached]
        expected[b, :, :reached] = found
    np.testing.assert_allclose(weights, expected, **EXACT)
    np.testing.assert_allclose(context, expected @ memory, **EXACT)


def test_location_knows_fifty_positions_by_default():
    weights = LuongAttention("location")(
        random(1, 1, 4), random(1, 60, 4), return_attention_scores=True
    )[1]
    assert np.count_nonzero(to_numpy(weights), axis=-1).tolist() == [[50]]


def test_dropout_is_drawn_only_in_training():
    layer = LuongAttention("dot", dropout=0.25)
    query, memory = random(4, 25, 4), random(4, 25, 4, seed=1)
    options = {"return_attention_scores": True}
    plain = to_numpy(layer(query, memory, **options)[1])
    context, weights = layer(query, memory, training=True, **options)
    kept = to_numpy(weights) != 0
    np.testing.assert_allclose(plain.sum(-1), 1, rtol=1e-5)
    np.testing.assert_allclose(
        to_numpy(weights)[kept], plain[kept] / 0.75, rtol=1e-5
    )
    assert abs(kept.mean() - 0.75) < 0.05
    np.testing.assert_allclose(context, to_numpy(weights) @ memory, atol=1e-5)
    other = layer(query, memory, training=True, **options)[1]
    assert not np.array_equal(to_numpy(other) != 0, kept)


# The layer of Keras with the same score.


@pytest.mark.parametrize("use_scale", [False, True])
@pytest.mark.parametrize("masks", ["none", "value", "query", "both"])
def test_dot_equals_the_attention_of_keras(masks, use_scale, float64):
    ours = make("dot", use_scale=use_scale)
    theirs = keras.layers.Attention(use_scale=use_scale, dtype="float64")
    query, memory = random(2, 3, 4), random(2, 5, 4)
    query_mask = prefix_mask([3, 1], 3) if masks in ("query", "both") else None
    value_mask = MASK if masks in ("value", "both") else None
    options = {"return_attention_scores": True}
    theirs([query, memory])
    theirs.set_weights(ours.get_weights())
    keras_mask = value_mask
    if keras_mask is not None and KERAS < (3, 12):
        # Keras does not broadcast it over queries.
        keras_mask = keras_mask[:, None]
    expected = theirs([query, memory], mask=[query_mask, keras_mask], **options)
    found = ours(
        query, memory, query_mask=query_mask, value_mask=value_mask, **options
    )
    assert_all_close(found, expected, **EXACT)


def test_masked_query_of_a_single_step_gives_zeros():
    mask = np.array([True, False])
    layer = LuongAttention("general")
    found = layer(random(2, 4), random(2, 5, 4), query_mask=mask)
    assert to_numpy(found).any(-1).tolist() == [True, False]


# Errors.


@pytest.mark.parametrize("kind", [LuongAttention, LocalAttention])
@pytest.mark.parametrize("container", [list, tuple])
def test_list_of_inputs_is_refused_with_the_right_call(container, kind):
    both = container([random(2, 3, 4), random(2, 5, 4)])
    with pytest.raises(ValueError, match=r"layer\(query, value\)"):
        kind()(both)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"score_mode": "bilinear"}, "must be one of.*score_mode='bilinear'"),
        ({"score_mode": "dot", "max_length": 9}, "max_length.*location"),
        ({"score_mode": "general", "max_length": 9}, "max_length.*location"),
        ({"score_mode": "location", "max_length": 0}, "max_length.*least 1"),
        ({"score_mode": "dot", "units": 3}, "units.*concat"),
        ({"concat_form": "joint"}, "concat_form.*concat.*'general'"),
        ({"score_mode": "concat", "concat_form": "x"}, "concat_form='x'"),
        (
            {"score_mode": "concat", "concat_form": "query_only", "units": 3},
            "query_only.*units=3",
        ),
        ({"dropout": 1.0}, "dropout.*Received: dropout=1.0"),
        ({"dropout": -0.1}, "dropout.*Received: dropout=-0.1"),
    ],
)
def test_arguments_are_checked(options, message):
    with pytest.raises(ValueError, match=message):
        LuongAttention(**options)


@pytest.mark.tensorflow
@pytest.mark.parametrize("score_mode", SCORES)
def test_tensorflow_checkpoint_has_all_weights(score_mode, tmp_path):
    import tensorflow as tf

    layer = LuongAttention(score_mode)
    layer.build((1, 2, 3), (1, 4, 3))
    path = tf.train.Checkpoint(layer=layer).save(tmp_path / "checkpoint")
    found = [name for name, _ in tf.train.list_variables(path)]
    for weight in layer.weights:
        assert any(name.startswith(f"layer/{weight.name}/") for name in found)


class Named(Score):
    """A score whose weight has the name of an attribute of the layer."""

    def build(self, add_weight, query_shape, value_shape):
        self.kernel = add_weight("dropout", (query_shape[-1],))

    def __call__(self, query, keys):
        return ops.matmul(query * self.kernel, ops.transpose(keys, (0, 2, 1)))


def test_score_weight_named_like_a_layer_attribute_is_refused():
    layer = LuongAttention(Named())
    with pytest.raises(ValueError, match=r"name='dropout', in Named\.build"):
        layer.build((1, 2, 3), (1, 4, 3))
