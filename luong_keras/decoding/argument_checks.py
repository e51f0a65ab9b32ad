"""Checks of the arguments of a search.

In a compiled function tensors have no values: what is known of them is their
shapes.
"""

from keras import ops

from luong_keras.ops.masking import may_be_equal


def check_kinds(example, kind, objects):
    """Refuses names, functions, and classes in the place of objects."""
    if wrong := [each for each in objects if not isinstance(each, kind)]:
        raise ValueError(
            f"Expected: a {kind.__name__} of luong_keras.decoding, as in "
            f"{example}. Received: {wrong[0]!r}."
        )


def of_each_sentence(name, lengths, batch):
    """Lengths (B,) as int32."""
    lengths = ops.cast(lengths, "int32")
    shape = tuple(lengths.shape)
    if not may_be_equal(shape, (batch,)):
        raise ValueError(
            f"`{name}` is one number of each sentence, (B,) = ({batch},). "
            f"Received: shape {shape}. For one number for all, "
            f"keras.ops.full(({batch},), number)."
        )
    return lengths


def check_ids(size, special_ids):
    """Refuses ids outside the vocabulary of the logits."""
    names = ("bos_id", "eos_id", "pad_id")
    for name, each in zip(names, special_ids, strict=True):
        if isinstance(size, int) and not 0 <= each < size:
            raise ValueError(
                f"Expected: `{name}` in the vocabulary of the logits, 0 to "
                f"{size - 1}. Received: {name}={each}. Give the id that the "
                "model was trained with."
            )


def known_values(value):
    """A NumPy array, or None of what has no value yet."""
    try:
        return ops.convert_to_numpy(value)
    except (NotImplementedError, TypeError, ValueError):
        return None


def check_positive(**settings):
    """Refuses numbers, or arrays of them, that are not all positive."""
    for name, value in settings.items():
        values = known_values(value)
        if values is not None and (
            values.dtype.kind in "OSU" or not (values > 0).all()
        ):
            raise ValueError(
                f"`{name}` must be positive. Received: {name}={value}. For "
                "the most probable words search greedily or with a beam."
            )
