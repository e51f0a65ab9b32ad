"""Selection of the rows of some sentences of a batch, during a search."""

import copy

import numpy as np
from keras import backend, ops, tree

from luong_keras.ops import backends


class PerSentence:
    """Base class of objects that may have a value for each sentence.

    Attributes:
        per_sentence: names of the attributes that may be tensors of one row
            per sentence, None or one number for all sentences, another
            `PerSentence`, or a list of these. A class names the attributes
            that it adds to the inherited ones, `()` if it adds none; a class
            without names may have others that `take` does not know.

    Example:
    >>> class Limits(PerSentence):
    ...     per_sentence = ("maximum",)
    ...     def __init__(self, maximum):
    ...         self.maximum = maximum
    >>> taken = Limits(column([5, 6, 7])).take([0, 2])
    >>> ops.convert_to_numpy(taken.maximum).tolist()
    [5, 7]
    """

    per_sentence: tuple[str, ...] | None = None

    @property
    def has_rows(self) -> bool:
        """True if `take` knows all values that depend on the sentence."""
        declared = vars(type(self)).get("per_sentence") is not None
        return declared and all(
            getattr(each, "has_rows", not callable(each))
            for value in self.of_sentences().values()
            for each in tree.flatten(value)
        )

    def of_sentences(self):
        """Return the attributes of `per_sentence` and its bases, by name."""
        names = [
            name
            for kind in type(self).__mro__
            for name in vars(kind).get("per_sentence") or ()
        ]
        return {name: getattr(self, name) for name in dict.fromkeys(names)}

    def take(self, rows):
        """Return a copy with only the sentences at `rows` (R,)."""
        taken = copy.copy(self)
        for name, value in self.of_sentences().items():
            setattr(taken, name, take_rows(value, rows))
        return taken


def column(value):
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

    def taken(value):
        if isinstance(value, PerSentence):
            return value.take(rows)
        value = column(value)
        alone = value is None or isinstance(value, int | float)
        if alone or len(value.shape) == 0 or value.shape[0] == 1:
            return value
        return backends.rows(value, rows)

    return tree.map_structure(taken, values)


def put_rows(values, rows, others):
    """Put `others` (R, ...) at the rows `rows` of tensors (B, ...)."""
    index = ops.reshape(rows, (-1, 1))

    def put(value, other):
        dtype = backend.standardize_dtype(value.dtype)
        if dtype not in ("bool", "float16", "bfloat16"):
            return ops.scatter_update(value, index, other)
        # TensorFlow scatters these only on the host.
        value, other = (ops.cast(each, "float32") for each in (value, other))
        return ops.cast(ops.scatter_update(value, index, other), dtype)

    return tree.map_structure(put, values, others)
