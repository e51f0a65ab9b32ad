"""The largest values in an order that is the same on every backend."""

from keras import backend, ops


def largest(values, count):
    """`ops.top_k`: of equal values the one at the lowest place comes first.

    On torch that of Keras takes equal ones in any order.

    Args:
        values: (..., N).
        count: how many, at most N.

    Returns:
        The values and their places, (..., count) each.

    Example:
        >>> import numpy as np
        >>> _, places = largest(np.array([1.0, 3.0, 2.0, 3.0, 3.0]), 4)
        >>> np.array(places).tolist()
        [1, 3, 4, 2]
    """
    if backend.backend() != "torch":
        return ops.top_k(values, count)
    values = ops.convert_to_tensor(values)
    places = ops.argsort(-values, axis=-1)[..., :count]
    return ops.take_along_axis(values, places, axis=-1), places
