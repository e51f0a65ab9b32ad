"""Fixtures of the golden tests."""

import collections

import keras
import pytest

from tests.golden.golden_files import Comparison, open_case

# `make test` runs one case in this many; JAX compiles each case anew.
EVERY = {"tensorflow": 20, "jax": 40}
# For these files JAX compiles every batch or every length.
_LONG_ON_JAX = ("test_training", "test_decode")
_CASES = pytest.StashKey[int]()


def pytest_collection_modifyitems(items):
    """Mark most cases as slow; `make golden` runs all."""
    every = EVERY.get(keras.backend.backend(), 1)
    counts = collections.Counter()
    for item in items:
        if item.path.parent.name == "golden" and hasattr(item, "callspec"):
            on_jax = keras.backend.backend() == "jax"
            long = on_jax and item.path.stem in _LONG_ON_JAX
            if long or counts[item.path] % every:
                item.add_marker(pytest.mark.slow)
            counts[item.path] += 1


@pytest.fixture(autouse=True)
def _few_compiled_programs(request):
    """Clear the caches of JAX after every tenth case.

    Every compiled program stays mapped into memory, and Linux allows only
    65,530 mappings.
    """
    yield
    if keras.backend.backend() == "jax":
        request.config.stash[_CASES] = request.config.stash.get(_CASES, 0) + 1
        if request.config.stash[_CASES] % 10 == 0:
            import jax

            jax.clear_caches()


@pytest.fixture
def compare():
    """Make the `Comparison` of a case, which must compare all arrays."""
    comparisons = []

    def make(*arguments, **options):
        comparisons.append(Comparison(*arguments, **options))
        return comparisons[-1]

    yield make
    for comparison in comparisons:
        comparison.finish()


@pytest.fixture
def case(request):
    """Return the arrays and the meta of the case of a test."""
    return open_case(*request.param)
