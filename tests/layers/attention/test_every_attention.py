"""Properties of every attention; other tests compare each with a reference."""

import keras
import numpy as np
import pytest
from keras import ops

from tests.layer_checks import (
    EXACT,
    assert_all_close,
    check_gradients,
    few_at_first,
    gradients,
    prefix_mask,
    random,
    randomize,
    to_numpy,
)
from tests.layers.attentions import ATTENTIONS, attention_named, is_local

MASK = prefix_mask([7, 4], 7)
EACH_KIND = ("general", "location-9-True", "concat-joint", "user-score")
EACH_KIND += ("monotonic-none-1", "predictive-after_softmax-1")
every_attention = pytest.mark.parametrize(
    "name", few_at_first(ATTENTIONS, EACH_KIND)
)


@every_attention
def test_single_steps_equal_those_of_the_whole_sequence(name, float64):
    query, memory = random(2, 5, 4), random(2, 7, 4, seed=1)
    layer = randomize(attention_named(name), query.shape, memory.shape)
    options = {"value_mask": MASK, "return_attention_scores": True}
    plain = to_numpy(layer(query, memory, **options)[1])
    drop = 2.0 * (random(2, 5, 7) > 0)
    context, weights = map(
        to_numpy, layer(query, memory, dropout_mask=drop, **options)
    )
    np.testing.assert_allclose(weights, plain * drop, **EXACT)
    np.testing.assert_allclose(context, weights @ memory, **EXACT)
    keys = layer.project_keys(ops.convert_to_tensor(memory))
    again = layer(query, memory, keys=keys, dropout_mask=drop, **options)
    assert_all_close(again, (context, weights), **EXACT)
    for t in (0, 2, 4):
        for position in (t, np.array([t, t])):
            if is_local(name):
                options["position"] = position
            one = layer(
                query[:, t],
                memory,
                keys=keys,
                dropout_mask=drop[:, t],
                **options,
            )
            assert_all_close(one, (context[:, t], weights[:, t]), **EXACT)


@pytest.mark.slow_after_first
@every_attention
def test_gradients(name, float64):
    query = keras.Variable(random(2, 5, 4), dtype="float64", name="query")
    memory = keras.Variable(random(2, 7, 4), dtype="float64", name="memory")
    layer = randomize(attention_named(name), query.shape, memory.shape)

    def loss():
        context = layer(query + 0, memory + 0, value_mask=MASK)
        return ops.sum(ops.square(context))

    check_gradients(loss, [query, memory, *layer.trainable_variables])
    if name.startswith("predictive"):
        # Only the Gaussian gives the position weights a gradient.
        (gradient,) = gradients(loss, [layer.position_kernel])
        assert gradient.any() == ("none" not in name)


@pytest.mark.slow_after_first
@every_attention
def test_an_empty_sentence_gives_zeros(name):
    query, memory = keras.Variable(random(2, 3, 4)), random(2, 5, 4)
    layer = attention_named(name, "float32")
    mask = prefix_mask([4, 0], 5)

    def attend():
        return layer(
            query + 0, memory, value_mask=mask, return_attention_scores=True
        )

    for result in map(to_numpy, attend()):
        assert result[0].any() and not result[1].any()
    found = gradients(
        lambda: ops.sum(ops.square(attend()[0])),
        [query, *layer.trainable_variables],
    )
    assert all(np.isfinite(gradient).all() for gradient in found)
