"""What stands behind paths such as `encoder.stacks.0.1.units`."""

import keras

ABSENT = None  # What is not there: no such part, or none in this model.


def described(thing, paths):
    """The value at the end of each path, as plain as can be written down."""
    return {path: _plain(_behind(thing, path.split("."))) for path in paths}


def _behind(thing, names):
    for name in names:
        if not name.isdecimal():
            thing = getattr(thing, name, ABSENT)
        elif thing is not ABSENT:
            thing = thing[int(name)] if int(name) < len(thing) else ABSENT
    return thing


def _plain(value):
    if isinstance(value, keras.initializers.RandomUniform):
        return ("uniform", value.minval, value.maxval)
    if isinstance(value, keras.DTypePolicy):
        return value.name
    if isinstance(value, (keras.initializers.Initializer, keras.Layer)):
        return type(value).__name__
    return value.__name__ if callable(value) else value
