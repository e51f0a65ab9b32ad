"""Checks of the arguments of a search.

In a compiled function, only the shapes of tensors are known.
"""

import keras
import numpy as np
from keras import ops, tree

from luong_keras.config.checks import check_integers
from luong_keras.ops.batch_compaction import PerSentence
from luong_keras.ops.masking import shapes_compatible

_INT32 = -(2**31), 2**31 - 1


def check_kinds(example, kind, objects):
    """Return the objects as a list; refuse other types and a single object."""
    is_list = hasattr(objects, "__iter__") and not isinstance(objects, str)
    # A generator can be read only once.
    objects = list(objects) if is_list else [objects]
    wrong = [x for x in objects if not is_list or not isinstance(x, kind)]
    if wrong:
        raise ValueError(
            f"Expected: {'a' if is_list else 'a list, each item a'} "
            f"{kind.__name__} of luong_keras.decoding, as in {example}. "
            f"Received: {wrong[0]!r}."
        )
    return objects


def check_lengths(name, lengths, batch, rows=None, limits=_INT32):
    """Return the lengths as int32; check that they are integers (B,).

    One number is repeated for each of the `rows`, a tensor (B, ...).
    """
    if rows is not None and np.ndim(lengths) == 0:
        lengths = check_integer(name, lengths, minimum=0)
        lengths = ops.broadcast_to(lengths, ops.shape(rows)[:1])
    shape = tuple(ops.convert_to_tensor(lengths).shape)
    if not shapes_compatible(shape, (batch,)):
        raise ValueError(
            f"`{name}` must have one number per sentence, "
            f"{'(B,)' if batch is None else (batch,)}. Received: shape "
            f"{shape}. To use one number for all, pass "
            f"keras.ops.full(({batch or 'B'},), number)."
        )
    return check_counts(name, lengths, *limits, "one per sentence")


def is_first(position):
    """Test whether this is the step of the empty hypothesis.

    A search runs the first step before its loop, with the number 0 as
    `position`. In the loop, `position` is a tensor.
    """
    return isinstance(position, int) and position == 0


def known_values(value):
    """Return the values as a NumPy array, or None for a symbolic tensor."""
    # `np.array` warns before it refuses the tensors of a graph.
    to_array = getattr(value, "__array__", lambda: np.array(value))
    try:
        return to_array()
    except (RuntimeError, TypeError, ValueError):
        return None


def largest_number(values):
    """Return the largest value; an int, for JAX's fixed shapes, if known."""
    known = known_values(values)
    return ops.max(values) if known is None else int(known.max(initial=0))


def resolve_max_steps(max_steps, max_lengths):
    """Return `max_steps`, by default the largest of `max_lengths`."""
    if max_steps is None:
        max_steps = largest_number(max_lengths)
        if keras.backend.backend() == "jax" and not isinstance(max_steps, int):
            raise ValueError(
                "`max_steps` must be given in a function that JAX compiles, "
                "because the values of `max_lengths` are not known. Received: "
                f"max_lengths={max_lengths} and max_steps=None."
            )
    return check_integer("max_steps", max_steps, minimum=0)


def check_numbers(expected, test, advice="", **settings):
    """Check that numbers, or arrays of numbers, pass a test.

    `expected` describes the numbers that pass it in the error.
    """
    for name, value in settings.items():
        values = known_values(value)
        if values is not None and (
            values.dtype.kind in "OSU" or not test(values).all()
        ):
            raise ValueError(
                f"`{name}` must be {expected}. Received: {name}={value!r}."
                f"{advice}"
            )


def check_integer(name, value, minimum=1, optional=False):
    """Check an integer and return an int; symbolic tensors are not checked."""
    values = known_values(value)
    if values is None:
        return value
    number = values.item() if values.ndim == 0 else value
    check_integers(minimum, optional, **{name: number})
    return number


def check_counts(name, counts, minimum, maximum, description):
    """Return counts (B, ...) as int32; check them if values are known.

    None is `maximum` for all. Counts without known values are clipped to it;
    `description` explains it in the error.
    """
    if counts is None:
        return maximum
    values, limit = known_values(counts), known_values(maximum)
    is_known = values is not None and limit is not None
    if is_known and (
        values.ndim == 0
        or values.dtype.kind in "OSU"
        or not ((values >= minimum) & (values <= limit)).all()
        or (values % 1 > 0).any()
    ):
        raise ValueError(
            f"Expected: `{name}`, an array of integers from {minimum} to "
            f"{maximum}, {description}. Received: {name}={counts}."
        )
    return ops.minimum(ops.cast(counts, "int32"), ops.cast(maximum, "int32"))


def check_one_or_each(
    name, counts, minimum=1, description="or one int for all"
):
    """Check and return None, a count, or one count per sentence, (B,)."""
    if np.ndim(counts):
        return check_counts(name, counts, minimum, 2**31 - 1, description)
    return check_integer(name, counts, minimum, optional=True)


def check_rows(owner, batch):
    """Check the batch size of the arguments; one row serves all sentences."""
    for name, value in owner.per_sentence_values().items():
        for tensor in tree.flatten(value):
            if isinstance(tensor, PerSentence):
                check_rows(tensor, batch)
                continue
            rows = tuple(getattr(tensor, "shape", ()))[:1]
            if rows and rows != (1,) and not shapes_compatible(rows, (batch,)):
                raise ValueError(
                    f"Expected: `{name}` of {type(owner).__name__} with one "
                    f"row for each of {batch} sentences, or one for all. "
                    f"Received: shape {tuple(tensor.shape)}."
                )


def check_words(name, words, lengths, vocabulary_size):
    """Check that the first words of each row are in the logits' vocabulary.

    words (..., L) ids, lengths (...): the number of ids that count in a row.
    """
    values, counts = known_values(words), known_values(lengths)
    if values is None or counts is None or not isinstance(vocabulary_size, int):
        return
    wrong = np.arange(values.shape[-1]) < counts[..., None]
    wrong = wrong & ((values < 0) | (values >= vocabulary_size))
    if wrong.any():
        first = np.broadcast_to(values, wrong.shape)[wrong][0]
        raise ValueError(
            f"Expected: `{name}` in the vocabulary of the logits, 0 to "
            f"{vocabulary_size - 1}. Received: {name}={first}. Give ids that "
            "the model was trained with."
        )
