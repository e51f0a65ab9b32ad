"""Pure functions on `keras.ops`: the mathematics, without weights."""
