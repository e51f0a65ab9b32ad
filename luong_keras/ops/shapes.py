"""Comparison of shapes that may not be known yet."""


def may_be_equal(shape, wanted):
    """Whether two shapes can be equal; a None in them is any size."""
    return len(shape) == len(wanted) and all(
        None in (a, b) or a == b for a, b in zip(shape, wanted, strict=True)
    )
