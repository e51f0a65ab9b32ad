"""Pure functions on `keras.ops`: the mathematics, without weights."""

import keras  # noqa: F401  (before any module: see `registration`)
