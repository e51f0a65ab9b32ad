import dataclasses
import types

import numpy as np
import pytest
from keras import ops

from luong_keras.config import ModelConfig
from luong_keras.decoding.ensemble import ModelEnsemble, ensemble_step
from tests.decoding.toy_step import ToyStep


@pytest.mark.parametrize("average", ["logits", "probabilities"])
def test_models_are_averaged(average):
    steps = [ToyStep(seed=seed) for seed in (1, 2, 3)]
    ids, states = np.array([[4], [6]]), [np.array([[[3.0]], [[8.0]]])]
    results = [step(ids, states, 2) for step in steps]
    step = ensemble_step(steps, [1, 1, 1], average)
    logits, new_states, weights = step(ids, states * 3, 2)
    found = np.exp(np.asarray(ops.log_softmax(logits, axis=-1)))
    each = [np.asarray(logits, "float64") for logits, _, _ in results]
    if average == "logits":
        expected = np.exp(np.mean(each, axis=0))
    else:
        expected = np.mean(
            [np.exp(x) / np.exp(x).sum(-1, keepdims=True) for x in each], 0
        )
    expected = expected / expected.sum(-1, keepdims=True)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    for new, (_, states_of_one, _) in zip(new_states, results, strict=True):
        np.testing.assert_array_equal(new, states_of_one[0])
    np.testing.assert_allclose(
        weights, np.mean([np.asarray(w) for _, _, w in results], 0), rtol=1e-6
    )


def test_invalid_arguments_are_refused():
    step = ToyStep()
    with pytest.raises(ValueError, match="average='median'"):
        ensemble_step([step], [1], "median")
    with pytest.raises(ValueError, match="1 steps and 2 counts"):
        ensemble_step([step], [1, 1])


@pytest.mark.parametrize(
    "name",
    [
        field.name
        for field in dataclasses.fields(ModelConfig)
        if field.name.endswith(("vocabulary_size", "_id"))
    ],
)
def test_models_must_share_their_vocabularies(name):
    config = ModelConfig(20, 20)
    other = dataclasses.replace(config, **{name: 19})
    models = [types.SimpleNamespace(config=x) for x in (config, other)]
    with pytest.raises(ValueError, match=f"the same {name}"):
        ModelEnsemble(models)
