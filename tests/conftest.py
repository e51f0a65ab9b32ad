import keras
import pytest

from tests.layer_checks import double_precision


@pytest.fixture(autouse=True)
def seeds():
    keras.utils.set_random_seed(0)


@pytest.fixture
def float64():
    """Lets `dtype="float64"` mean it, for a comparison with NumPy."""
    with double_precision():
        yield
