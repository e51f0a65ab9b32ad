"""Values of attribute paths such as `encoder.stacks.0.1.units`."""

import keras

ABSENT = None  # The model has no such part, or its value is None.


def at(path, **values):
    """Return values by the paths of attributes of one thing."""
    return {f"{path}.{name}": value for name, value in values.items()}


def row(field, value, changes):
    """Return the row of a field: its value, and the changed attributes."""
    return {field: ({field: value}, changes)}


def changed(field, value, *paths):
    """Return the row of a field whose value these attributes get."""
    return row(field, value, dict.fromkeys(paths, value))


def values_at(thing, paths):
    """Return the value at each path as a plain literal."""
    return {
        path: _plain_value(_value_at(thing, path.split("."))) for path in paths
    }


def _value_at(thing, names):
    for name in names:
        if not name.isdecimal():
            thing = getattr(thing, name, ABSENT)
        elif thing is not ABSENT:
            thing = thing[int(name)] if int(name) < len(thing) else ABSENT
    return thing


def _plain_value(value):
    if isinstance(value, keras.initializers.RandomUniform):
        return ("uniform", value.minval, value.maxval)
    if isinstance(value, keras.DTypePolicy):
        return value.name
    if isinstance(value, (keras.initializers.Initializer, keras.Layer)):
        return type(value).__name__
    return value.__name__ if callable(value) else value
