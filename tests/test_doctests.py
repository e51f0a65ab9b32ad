"""Examples in docstrings, run as doctests."""

import doctest
import importlib
import pkgutil

import keras
import numpy as np
import pytest

import luong_keras
from tests.layer_checks import BACKEND, few_on_jax

MODULES = [
    module.name
    for module in pkgutil.walk_packages(luong_keras.__path__, "luong_keras.")
    if not module.ispkg
]


# The other modules run on one backend only.
ON_EVERY_BACKEND = ("layers", "ops", "decoding", "models", "training")


@pytest.mark.slow_on_jax
@pytest.mark.parametrize(
    "name",
    few_on_jax(
        MODULES,
        [name for name in MODULES if name.split(".")[1] in ON_EVERY_BACKEND],
    ),
)
def test_examples_of_a_module_run(name):
    if BACKEND == "torch" and name == "luong_keras.ops.loops":
        pytest.skip("torch differentiates by itself")
    module = importlib.import_module(name)
    options = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    with np.printoptions(precision=8, suppress=False, threshold=1000):
        failed, _ = doctest.testmod(module, optionflags=options)
    assert failed == 0


@pytest.mark.parametrize("name", luong_keras.__all__)
def test_every_public_layer_has_an_example(name):
    value = getattr(luong_keras, name)
    if isinstance(value, type) and issubclass(value, keras.layers.Layer):
        assert ">>>" in value.__doc__
