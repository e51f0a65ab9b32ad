"""Hypotheses in another order."""

from keras import ops


def gather_beams(tensors, order):
    """Rows of every tensor (B, N, ...) at order (B, M): (B, M, ...) each.

    One gather of whole rows, where `ops.take_along_axis` would gather
    number by number.

    Example:
    >>> import numpy as np
    >>> states = np.array([[[1, 1], [2, 2]], [[3, 3], [4, 4]]])
    >>> (taken,) = gather_beams([states], np.array([[1, 1], [1, 0]], "int32"))
    >>> np.array(taken)[..., 0].tolist()
    [[2, 2], [4, 3]]
    """
    index = flat_rows(order, ops.shape(tensors[0])[1])
    rows = [ops.reshape(x, (-1, *ops.shape(x)[2:])) for x in tensors]
    return [ops.take(x, index, axis=0) for x in rows]


def flat_rows(order, count):
    """Where rows `order` (B, M) of (B, N, ...) stand in (B · N, ...)."""
    first = ops.arange(ops.shape(order)[0], dtype="int32") * count
    return ops.convert_to_tensor(order) + first[:, None]
