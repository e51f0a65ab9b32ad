"""Some of the sentences of a batch: their rows of whatever a search has."""

import copy

from keras import backend, ops, tree


class PerSentence:
    """Something that may have a value for each sentence of a batch.

    Attributes:
        per_sentence: the names of the attributes that have one row a sentence
            where they are tensors; they may be None or one number for all,
            another `PerSentence`, or a list of these. A class names those
            that it adds to what it inherits, `()` where it adds none; a class
            that names nothing may have more than is known.

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
        """Whether `take` knows all that depends on the sentence."""
        declared = vars(type(self)).get("per_sentence") is not None
        return declared and all(
            getattr(each, "has_rows", not callable(each))
            for value in self.of_sentences().values()
            for each in tree.flatten(value)
        )

    def of_sentences(self):
        """The attributes of `per_sentence`, inherited ones too, by name."""
        names = [
            name
            for kind in type(self).__mro__
            for name in vars(kind).get("per_sentence") or ()
        ]
        return {name: getattr(self, name) for name in dict.fromkeys(names)}

    def take(self, rows):
        """The same, only for the sentences at `rows` (R,)."""
        taken = copy.copy(self)
        for name, value in self.of_sentences().items():
            setattr(taken, name, take_rows(value, rows))
        return taken


def column(value):
    """A value for each sentence: None, one number, or a tensor."""
    if value is None or isinstance(value, int | float):
        return value
    return ops.convert_to_tensor(value)


def take_rows(values, rows):
    """Rows (R, ...) of all tensors (B, ...) of a structure.

    What has one row stands for all sentences, as a number does.
    """

    def taken(value):
        if isinstance(value, PerSentence):
            return value.take(rows)
        value = column(value)
        alone = value is None or isinstance(value, int | float)
        if alone or len(value.shape) == 0 or value.shape[0] == 1:
            return value
        return ops.take(value, rows, axis=0)

    return tree.map_structure(taken, values)


def put_rows(values, rows, others):
    """A structure of tensors (B, ...) with other rows (R, ...) at `rows`."""
    index = ops.reshape(rows, (-1, 1))

    def put(value, other):
        dtype = backend.standardize_dtype(value.dtype)
        if dtype not in ("bool", "float16", "bfloat16"):
            return ops.scatter_update(value, index, other)
        # TensorFlow scatters these only on the host.
        value, other = (ops.cast(each, "float32") for each in (value, other))
        return ops.cast(ops.scatter_update(value, index, other), dtype)

    return tree.map_structure(put, values, others)
