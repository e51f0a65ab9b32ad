"""Masks, their softmax, indices in padded rows, dtypes and shapes.

A mask is boolean and True means "use". A sentence spans its first True to its
last, whichever side is padded. A False between them is a hole: it keeps its
position, has weight 0 and is not a word. Indices count from the beginning of a
padded row, positions from the first word of its sentence.
"""

from typing import Any, NamedTuple

from keras import backend, ops

# TensorFlow computes int32 on the host, even if it has a GPU. Loop counters
# stay int32, because the host needs them anyway.
INDEX_DTYPE = "int64" if backend.backend() == "tensorflow" else "int32"


class Span(NamedTuple):
    """First indices and lengths of sentences, integers (...) each.

    Attributes:
        first: The index of the first word; 0 in an empty row.
        length: S, the number of positions from the first word to the last.
    """

    first: Any
    length: Any


def wider_dtype(dtype) -> str:
    """Return the wider of float32 and `dtype`: only float64 is wider."""
    is_wide = backend.standardize_dtype(dtype) == "float64"
    return "float64" if is_wide else "float32"


def upcast(x):
    """Cast a floating tensor to the wider of float32 and its dtype."""
    return ops.cast(x, wider_dtype(x.dtype))


def all_indices(length):
    """Return the indices of a row, 0 to `length` - 1."""
    # JAX 0.5 needs both ends of a range of symbolic length.
    return ops.arange(0, length, dtype=INDEX_DTYPE)


def span(mask):
    """Return the `Span` of each sentence of a mask (..., S)."""
    indices = all_indices(mask.shape[-1] or ops.shape(mask)[-1])
    size = ops.cast(ops.shape(mask)[-1], INDEX_DTYPE)
    mask = ops.cast(mask, "bool")
    end = ops.max(ops.where(mask, indices + 1, 0), axis=-1)
    first = size - ops.max(ops.where(mask, size - indices, 0), axis=-1)
    # In an empty row `first` is after the end.
    first = ops.minimum(first, end)
    return Span(first, end - first)


def masked_softmax(scores, mask=None):
    """Apply a softmax over the last axis to the True entries of `mask`.

    Computed in the wider of float32 and the dtype of `scores`, which is also
    the dtype of the result. A row without a True entry gives zeros, never
    NaN. `mask` broadcasts to the shape of `scores`.
    """
    scores = upcast(scores)
    if mask is None and scores.shape[-1] != 1:
        return ops.softmax(scores, axis=-1)
    if mask is None:  # `ops.softmax` warns of a source of one word
        return ops.exp(ops.log_softmax(scores, axis=-1))
    # Minus infinity would make a row without a True entry NaN.
    log_weights = ops.log_softmax(ops.where(mask, scores, -1e30), axis=-1)
    return ops.where(mask, ops.exp(log_weights), 0.0)


def zero_where_masked(x, mask):
    """Set rows (of all axes but the last) to zero where `mask` is False."""
    if mask is None:
        return x
    return ops.where(ops.expand_dims(mask, -1), x, ops.zeros((), dtype=x.dtype))


def zeros_of(spec, inputs, memory=None):
    """Return zeros (B, U), (B, T, U) or weights (B, T, S) as `spec` says.

    B and T are those of `inputs`, S, if unknown, that of `memory`.
    """
    *rows, width = spec.shape
    width = ops.shape(memory)[1] if width is None else width
    shape = (*ops.shape(inputs)[: len(rows)], width)
    return ops.zeros(shape, dtype=spec.dtype)


def shapes_compatible(shape, expected):
    """Test whether two shapes may be equal; None is any size."""
    return len(shape) == len(expected) and all(
        None in (a, b) or a == b for a, b in zip(shape, expected, strict=True)
    )


def unit_vectors(x):
    """Divide `x` by its length along the last axis; zeros stay zeros."""
    wide = upcast(x)
    squares = ops.sum(ops.square(wide), axis=-1, keepdims=True)
    # The square root has no finite gradient at zero.
    safe = ops.where(squares > 0, squares, 1.0)
    return ops.cast(wide / ops.sqrt(safe), x.dtype)
