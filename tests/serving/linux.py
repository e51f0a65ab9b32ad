"""Mark of tests that serve a model."""

import sys

import pytest

needs_linux = pytest.mark.skipif(
    not sys.platform.startswith("linux"),
    reason="a served model runs in the Linux libraries of TensorFlow's "
    "package, and its memory is read from /proc",
)
