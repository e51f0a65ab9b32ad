"""Fixtures of the tests of inference."""

import pytest
import tensorflow as tf


@pytest.fixture
def eager():
    """Run eagerly, which saves the time to build graphs."""
    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)
