from pathlib import Path

import keras
import pytest

# Here because only this file is read by a process that hands out the tests.
from tests.golden.summary import pytest_terminal_summary  # noqa: F401
from tests.layer_checks import double_precision

if keras.backend.backend() == "jax":
    import jax

    # The programs are tiny: compiling them takes longer than running them.
    jax.config.update("jax_disable_most_optimizations", True)


TESTS = Path(__file__).parent
# What reads text, batches it or serves it runs on TensorFlow alone.
TENSORFLOW_ONLY = (
    *("data", "text", "inference", "serving", "client", "recipe"),
    *("examples", "cli", "test_translator.py"),
)


def pytest_collection_modifyitems(items):
    """Marks the tests of whole folders as TensorFlow's."""
    for item in items:
        if item.path.relative_to(TESTS).parts[0] in TENSORFLOW_ONLY:
            item.add_marker(pytest.mark.tensorflow)


@pytest.fixture(autouse=True)
def seeds():
    keras.utils.set_random_seed(0)


@pytest.fixture
def float64():
    """Lets `dtype="float64"` mean it, for a comparison with NumPy."""
    with double_precision():
        yield
