"""Hypotheses in another order."""

from keras import ops


def take_rows(values, order):
    """Values (B, N, ...) at order (B, M), int32: (B, M, ...).

    One gather of whole rows, where `ops.take_along_axis` would gather
    number by number.

    Example:
    >>> import numpy as np
    >>> states = np.array([[[1, 1], [2, 2]], [[3, 3], [4, 4]]])
    >>> order = np.array([[1, 1], [1, 0]], "int32")
    >>> take_rows(states, order)[..., 0].numpy().tolist()
    [[2, 2], [4, 3]]
    """
    batch, count, *rest = ops.shape(values)
    first = ops.arange(batch, dtype="int32") * count
    rows = ops.reshape(values, (batch * count, *rest))
    return ops.take(rows, order + first[:, None], axis=0)
