"""Selection of the rows of some sentences of a batch, during a search."""

import copy

import numpy as np
from keras import backend, ops, tree

from luong_keras.ops import backends


class PerSentence:
    """Base class of objects that may have a value for each sentence.

    Attributes:
        per_sentence: Names of the attributes that may be tensors of one row
            per sentence, None or one number for all sentences, another
            `PerSentence`, or a list of these. A class names the attributes
            that it adds to the inherited ones, `()` if it adds none; a class
            without names may have others that `take` does not know.

    Example:
    >>> class Limits(PerSentence):
    ...     per_sentence = ("maximum",)
    ...     def __init__(self, maximum):
    ...         self.maximum = maximum
    >>> subset = Limits(number_or_tensor([5, 6, 7])).take([0, 2])
    >>> ops.convert_to_numpy(subset.maximum).tolist()
    [5, 7]
    """

    per_sentence: tuple[str, ...] | None = None

    @property
    def has_rows(self) -> bool:
        """True if `take` knows all values that depend on the sentence."""
        is_declared = vars(type(self)).get("per_sentence") is not None
        return is_declared and all(
            getattr(leaf, "has_rows", not callable(leaf))
            for value in self.per_sentence_values().values()
            for leaf in tree.flatten(value)
        )

    def per_sentence_values(self):
        """Return the attributes of `per_sentence` and its bases, by name."""
        names = [
            name
            for base in type(self).__mro__
            for name in vars(base).get("per_sentence") or ()
        ]
        return {name: getattr(self, name) for name in dict.fromkeys(names)}

    def take(self, rows):
        """Return a copy with only the sentences at `rows` (R,)."""
        subset = copy.copy(self)
        for name, value in self.per_sentence_values().items():
            setattr(subset, name, take_rows(value, rows))
        return subset


def number_or_tensor(value):
    """Return None or a number unchanged, another value as a tensor."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, int | float):
        return value
    return ops.convert_to_tensor(value)


def take_rows(values, rows):
    """Take the rows (R, ...) of all tensors (B, ...) of a structure.

    A tensor of one row holds for all sentences, like a number, and stays.
    """

    def take_leaf(value):
        if isinstance(value, PerSentence):
            return value.take(rows)
        value = number_or_tensor(value)
        is_constant = value is None or isinstance(value, int | float)
        if is_constant or len(value.shape) == 0 or value.shape[0] == 1:
            return value
        return backends.rows(value, rows)

    return tree.map_structure(take_leaf, values)


def put_rows(values, rows, updates):
    """Put `updates` (R, ...) at the rows `rows` of tensors (B, ...)."""
    index = ops.reshape(rows, (-1, 1))

    def put_leaf(value, update):
        dtype = backend.standardize_dtype(value.dtype)
        if dtype not in ("bool", "float16", "bfloat16"):
            return ops.scatter_update(value, index, update)
        # TensorFlow scatters these only on the host.
        value, update = (ops.cast(x, "float32") for x in (value, update))
        return ops.cast(ops.scatter_update(value, index, update), dtype)

    return tree.map_structure(put_leaf, values, updates)
